// The commands about run files. They need no coordinator.
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "proto/proto_text.h"
#include "proto/run_config_loader.h"
#include "proto/run_config_reference.h"
#include "storage/state_directory.h"
#include "tersectl/commands.h"
#include "tersectl/lists.h"
#include "tersectl/print.h"
#include "tersectl/report.h"
#include "tersectl/traffic.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<CheckedRun> ReadAndCheck(const std::string& file) {
  TERSE_ASSIGN_OR_RETURN(CheckedRun run, CheckRunFile(file));
  // The coordinator keeps a run in a directory of its name.
  const absl::Status served = CheckServedName(run.config.name());
  const bool is_known = absl::c_any_of(run.errors, [](const RunFileError& error) { return error.key == "name"; });
  if (!served.ok() && !is_known) run.errors.push_back({"name", run.name_line, std::string(served.message())});
  return run;
}

void PrintErrors(const ValidateOptions& options, const std::vector<RunFileError>& errors, const Terminal& terminal) {
  Json list = Json::array();
  for (const RunFileError& error : errors) {
    list.push_back(Json{{"key", error.key.empty() ? Json() : Json(error.key)},
                        {"line", error.line > 0 ? Json(error.line) : Json()},
                        {"reason", error.reason}});
  }
  PrintJson(Json{{"file", options.file}, {"valid", false}, {"errors", list}}, terminal);
}

absl::Status Refused(const ValidateOptions& options, const std::vector<RunFileError>& errors,
                     const Terminal& terminal) {
  const std::string number = absl::StrCat(errors.size(), errors.size() == 1 ? " error" : " errors");
  if (options.json) {
    PrintErrors(options, errors, terminal);
    return absl::InvalidArgumentError(absl::StrCat(options.file, ": ", number));
  }
  std::vector<std::string> lines;
  for (const RunFileError& error : errors) lines.push_back(RunFileErrorText(error, options.file));
  if (errors.size() > 1) lines.push_back(absl::StrCat(options.file, ": ", number));
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

void PrintKeys(const std::vector<RunConfigKey>& keys, const Terminal& terminal) {
  Json list = Json::array();
  for (const RunConfigKey& key : keys) {
    list.push_back(Json{{"key", key.key},
                        {"type", key.type},
                        {"default", key.default_value},
                        {"allowed", key.allowed},
                        {"description", key.description}});
  }
  PrintJson(list, terminal);
}

}  // namespace

absl::Status ValidateRunFile(const ValidateOptions& options, const Terminal& terminal) {
  const absl::StatusOr<CheckedRun> run = ReadAndCheck(options.file);
  if (!run.ok()) {
    if (options.json) PrintErrors(options, {{"", 0, std::string(run.status().message())}}, terminal);
    return run.status();
  }
  if (!run->errors.empty()) return Refused(options, run->errors, terminal);
  const v1::RunConfig& config = run->config;
  TERSE_ASSIGN_OR_RETURN(const TrafficReport traffic, ReportTraffic(config, /*parameters=*/0));
  if (options.json) {
    PrintJson(Json{{"file", options.file}, {"valid", true}, {"config", ToJson(config)}, {"traffic", traffic.json}},
              terminal);
  } else {
    *terminal.out << options.file << ": valid; run " << config.name() << ", " << config.rounds().count()
                  << " rounds of " << LocalStepsText(config) << " local steps, " << config.rounds().clients()
                  << " clients, codec " << config.codec().name() << "\n"
                  << traffic.text;
  }
  return absl::OkStatus();
}

absl::Status ShowConfigReference(const ConfigOptions& options, const Terminal& terminal) {
  if (options.markdown) {
    *terminal.out << RunConfigMarkdown();
    return absl::OkStatus();
  }
  std::vector<RunConfigKey> keys = RunConfigKeys();
  if (!options.key.empty()) {
    TERSE_ASSIGN_OR_RETURN(keys, FindRunConfigKeys(options.key));
  }
  const List<RunConfigKey> list = ConfigKeyList();
  const ListOptions& wanted = options.list;
  if (options.json || wanted.wide || !wanted.columns.empty()) {
    return ShowList(list, wanted, options.json, keys, terminal,
                    [&](const std::vector<RunConfigKey>& chosen) { PrintKeys(chosen, terminal); });
  }
  // With the descriptions below the keys.
  TERSE_ASSIGN_OR_RETURN(const std::vector<RunConfigKey> chosen, list.Choose(wanted, keys));
  *terminal.out << (chosen.empty() ? NoRows(list.one, list.nothing, keys.size(), wanted) : RunConfigReference(chosen));
  return absl::OkStatus();
}

}  // namespace terse
