// The options with which a daemon's log is set: --log-format and --log-level.
#ifndef TERSE_CORE_CLI_LOG_OPTIONS_H_
#define TERSE_CORE_CLI_LOG_OPTIONS_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/log/log.h"

namespace CLI {
class App;
}  // namespace CLI

namespace terse {

// Adds both options to `app`, which writes what it parses into `settings`; that must outlive the parsing. A level or
// component that there is not, of `components`, is a CLI::ValidationError, which names those that there are.
void AddLogOptions(CLI::App& app, absl::Span<const absl::string_view> components, LogSettings* settings);

}  // namespace terse

#endif  // TERSE_CORE_CLI_LOG_OPTIONS_H_
