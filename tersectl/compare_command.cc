// `tersectl run compare`: runs of a coordinator and exported folders side by side.
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/file_system.h"
#include "core/log/plain_text.h"
#include "core/status.h"
#include "proto/proto_text.h"
#include "proto/run_config_loader.h"
#include "tersectl/commands.h"
#include "tersectl/comparison.h"
#include "tersectl/print.h"
#include "tersectl/svg_plot.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kSummaryFile[] = "summary.json", kRoundsFile[] = "rounds.csv", kConfigFile[] = "config.json";

bool IsExported(const std::string& name) {
  std::error_code error;
  return std::filesystem::exists(FilePath(name, kSummaryFile), error);
}

absl::StatusOr<Json> ReadJson(const std::string& path) {
  TERSE_ASSIGN_OR_RETURN(const std::string text, PosixFiles().Read(path));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError(absl::StrCat(path, " is no JSON; export the run again"));
  return json;
}

absl::StatusOr<ComparedRun> ReadExported(const std::string& folder) {
  ComparedRun run;
  run.label = folder;
  const std::string summary_file = FilePath(folder, kSummaryFile), rounds_file = FilePath(folder, kRoundsFile);
  TERSE_ASSIGN_OR_RETURN(const Json summary_json, ReadJson(summary_file));
  absl::StatusOr<Summary> summary = SummaryFromJson(summary_json);
  if (!summary.ok()) return Annotate(summary.status(), summary_file);
  run.summary = *std::move(summary);
  TERSE_ASSIGN_OR_RETURN(const std::string csv, PosixFiles().Read(rounds_file));
  const absl::StatusOr<std::vector<v1::Round>> rounds = RoundsFromCsv(csv);
  if (!rounds.ok()) return Annotate(rounds.status(), rounds_file);
  run.points = EvaluatedPoints(*rounds);
  absl::StatusOr<Json> config = ReadJson(FilePath(folder, kConfigFile));
  if (!config.ok() && !absl::IsNotFound(config.status())) return config.status();
  if (config.ok()) run.config = *std::move(config);
  return run;
}

absl::StatusOr<ComparedRun> Fetch(const std::string& name, const CommandOptions& options) {
  TERSE_ASSIGN_OR_RETURN(AdminClient client,
                         AdminClient::Make(options.coordinator, absl::Seconds(options.timeout_seconds), name));
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, client.GetStatus());
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::Round> rounds, client.ListRounds(0, 0));
  return ComparedRun{name, ToJson(WithLaterDefaults(status.config())), Summarize(status, rounds),
                     EvaluatedPoints(rounds)};
}

absl::StatusOr<ComparedRun> Load(const std::string& name, const CommandOptions& options) {
  absl::StatusOr<ComparedRun> run = IsExported(name) ? ReadExported(name) : Fetch(name, options);
  if (run.ok() || absl::IsUnavailable(run.status())) return run;
  return absl::InvalidArgumentError(run.status().message());
}

absl::Status WritePlot(const std::string& file, const Comparison& comparison) {
  std::vector<RunCurve> curves;
  std::vector<std::string> labels;
  for (const ComparedRun& run : comparison.runs) {
    curves.push_back({run.label, run.points});
    labels.push_back(run.label);
  }
  return ReplaceFile(PosixFiles(), file, {ComparisonPlot(absl::StrJoin(labels, ", "), curves)});
}

// The runs that do not reach an accuracy which the command line names.
absl::Status CheckReached(const CompareOptions& options, const Comparison& comparison) {
  std::vector<std::string> short_of;
  for (const double accuracy : options.accuracies) {
    for (const ComparedRun& run : comparison.runs) {
      if (FirstToReach(accuracy, run.points) != nullptr) continue;
      short_of.push_back(absl::StrCat(run.label, " does not reach accuracy ", accuracy));
    }
  }
  if (short_of.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrJoin(short_of, "\n"));
}

}  // namespace

absl::Status CompareRuns(const CompareOptions& options, const Terminal& terminal) {
  std::vector<ComparedRun> runs;
  for (const std::string& name : options.runs) {
    TERSE_ASSIGN_OR_RETURN(ComparedRun run, Load(name, options));
    runs.push_back(std::move(run));
  }
  const Comparison comparison = Compare(std::move(runs), options.accuracies);
  if (!options.svg.empty()) TERSE_RETURN_IF_ERROR(WritePlot(options.svg, comparison));
  if (options.json) {
    PrintJson(ComparisonJson(comparison), terminal);
  } else {
    *terminal.out << ComparisonText(comparison, terminal.color);
    if (!options.svg.empty()) *terminal.out << "\nwritten: " << PlainText(options.svg) << "\n";
  }
  return CheckReached(options, comparison);
}

}  // namespace terse
