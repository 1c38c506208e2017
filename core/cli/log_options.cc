#include "core/cli/log_options.h"

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/cli/checks.h"

namespace terse {

void AddLogOptions(CLI::App& app, absl::Span<const absl::string_view> components, LogSettings* settings) {
  app.add_option_function<std::string>(
         "--log-format",
         [settings](const std::string& name) {
           settings->format = name == "json" ? LogFormat::kJson : LogFormat::kHuman;
         },
         "lines for people, or a JSON object a line")
      ->check(OneOf({"human", "json"}))
      ->default_str("human");
  app.add_option_function<std::string>(
         "--log-level",
         [components, settings](const std::string& text) {
           const absl::StatusOr<LogLevels> levels = ParseLogLevels(text, components);
           if (!levels.ok()) throw CLI::ValidationError("--log-level", std::string(levels.status().message()));
           settings->levels = *levels;
         },
         absl::StrCat("how much to log: debug, info, warn or error; single components otherwise, as in warn,",
                      components.front(), "=debug. Components: ", absl::StrJoin(components, ", ")))
      ->default_str("info");
}

}  // namespace terse
