// `tersectl run diff`: in which settings two runs differ, wherever they are.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/status.h"
#include "proto/proto_text.h"
#include "proto/run_config_loader.h"
#include "proto/run_config_reference.h"
#include "tersectl/commands.h"
#include "tersectl/print.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

struct Difference {
  std::string key;
  Json a, b;
};

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

Json ValueAt(const Json& config, const std::string& key) {
  return config.at(Json::json_pointer(absl::StrCat("/", absl::StrReplaceAll(key, {{".", "/"}}))));
}

// A run's name tells it from others and sets nothing.
std::vector<std::string> ComparedKeys() {
  std::vector<std::string> keys;
  for (RunConfigKey& key : RunConfigKeys()) {
    if (key.key != "name") keys.push_back(std::move(key.key));
  }
  return keys;
}

void Print(const std::vector<Difference>& differences, const DiffOptions& options, const Terminal& terminal) {
  if (options.json) {
    Json list = Json::array();
    for (const Difference& row : differences) list.push_back({{"key", row.key}, {"a", row.a}, {"b", row.b}});
    PrintJson(list, terminal);
    return;
  }
  if (differences.empty()) {
    *terminal.out << "no setting differs\n";
    return;
  }
  TextTable table({{"key"}, {options.a}, {options.b}});
  for (const Difference& row : differences) table.AddRow({row.key, row.a.dump(), row.b.dump()});
  *terminal.out << table.Render(terminal.color);
}

}  // namespace

absl::Status CompareRuns(const DiffOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig config_a, ConfigOf(options.a, options));
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig config_b, ConfigOf(options.b, options));
  const Json a = ToJson(config_a), b = ToJson(config_b);
  const std::vector<std::string> keys = ComparedKeys();
  std::vector<Difference> differences;
  for (const std::string& key : keys) {
    Difference row = {key, ValueAt(a, key), ValueAt(b, key)};
    if (row.a != row.b) differences.push_back(std::move(row));
  }
  Print(differences, options, terminal);
  if (differences.empty()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(differences.size(), " of ", keys.size(), " settings differ"));
}

}  // namespace terse
