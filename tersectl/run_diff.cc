// `tersectl run diff`: in which settings two runs differ, wherever they are.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "proto/proto_text.h"
#include "proto/run_config_loader.h"
#include "tersectl/commands.h"
#include "tersectl/config_diff.h"
#include "tersectl/print.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

bool NamesFile(const std::string& text) {
  std::error_code error;
  return absl::EndsWith(text, ".toml") ||
         (std::filesystem::exists(text, error) && !std::filesystem::is_directory(text, error));
}

// Every setting of a run file, or of a run of the coordinator.
absl::StatusOr<v1::RunConfig> ConfigOf(const std::string& run, const CommandOptions& options) {
  if (NamesFile(run)) return LoadRunConfig(run);
  absl::StatusOr<AdminClient> client =
      AdminClient::Make(options.coordinator, absl::Seconds(options.timeout_seconds), run);
  // Not INVALID_ARGUMENT, which is a run file's.
  if (!client.ok()) return absl::FailedPreconditionError(client.status().message());
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, client->GetStatus());
  return WithLaterDefaults(status.config());
}

void PrintDifferences(const std::vector<SettingDifference>& differences, const DiffOptions& options,
                      const Terminal& terminal) {
  if (options.json) {
    Json list = Json::array();
    for (const SettingDifference& row : differences) {
      list.push_back({{"key", row.key}, {"a", row.values[0]}, {"b", row.values[1]}});
    }
    PrintJson(list, terminal);
    return;
  }
  if (differences.empty()) {
    *terminal.out << "no setting differs\n";
    return;
  }
  TextTable table({{"key"}, {options.a}, {options.b}});
  for (const SettingDifference& row : differences) {
    table.AddRow({row.key, row.values[0].dump(), row.values[1].dump()});
  }
  *terminal.out << table.Render(terminal.color);
}

}  // namespace

absl::Status DiffRuns(const DiffOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig config_a, ConfigOf(options.a, options));
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig config_b, ConfigOf(options.b, options));
  const std::vector<SettingDifference> differences = DifferentSettings({ToJson(config_a), ToJson(config_b)});
  PrintDifferences(differences, options, terminal);
  if (differences.empty()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(differences.size(), " of ", ComparedKeys().size(), " settings differ"));
}

}  // namespace terse
