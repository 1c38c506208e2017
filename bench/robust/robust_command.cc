#include "bench/robust/robust_command.h"

#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/in_process_fleet.h"
#include "bench/robust/robust_table.h"
#include "core/cli/progress_line.h"
#include "core/file_system.h"
#include "core/status.h"
#include "learning/runtime.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

struct RobustOptions {
  std::string data;
  std::string out = "out/robust";
  std::string results;
  std::vector<std::string> only;
  std::vector<std::string> attacks;
  std::vector<int64_t> percent = {10, 20, 30};
  RobustSettings settings;
  bool json = false;
};

// A row's cells in the order of the columns: no attack, then every attack with every share of hostile clients.
struct Row {
  const Defence* defence;
  std::vector<RobustCell> cells;
};

absl::StatusOr<std::vector<Row>> MakeRows(const RobustOptions& options) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, HostileCounts(options.settings.clients, options.percent));
  std::vector<Row> rows;
  for (const Defence& defence : Defences()) {
    if (!options.only.empty() && !absl::c_linear_search(options.only, defence.name)) continue;
    Row row = {&defence, {}};
    for (const Attack& attack : Attacks()) {
      const bool wanted = options.attacks.empty() || absl::c_linear_search(options.attacks, attack.name);
      if (!wanted && attack.name != "none") continue;
      if (attack.name == "none") {
        row.cells.push_back(MakeRobustCell(defence, attack, 0, counts[counts.size() / 2], options.settings));
        continue;
      }
      for (const int64_t hostile : counts) {
        row.cells.push_back(MakeRobustCell(defence, attack, hostile, hostile, options.settings));
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// Trains to the end, or to the round whose training or aggregation fails. The cell's "note" says what the run file may
// not ask for (too few clients for a rule), or what ended the run early.
absl::StatusOr<Json> RunCell(const RobustOptions& options, const RobustCell& cell, ProgressLine* progress) {
  Json result = {{"key", cell.key}, {"accuracy", Json()}, {"refused_hostile", 0}, {"refused_honest", 0}, {"note", ""}};
  const absl::StatusOr<v1::RunConfig> file = ParseRunConfig(cell.run, "run");
  if (!file.ok()) {
    result["note"] = std::string(file.status().message());
    return result;
  }
  TERSE_ASSIGN_OR_RETURN(const RunConfig run, ToCore(*file));
  TERSE_ASSIGN_OR_RETURN(const auto fleet, InProcessFleet::Create(run, options.data, "cpu"));
  const auto attack = [&](absl::Span<const absl::Span<float>> deltas) {
    cell.attack->change(deltas.subspan(0, cell.hostile));
  };
  for (int64_t round = 1; round <= run.rounds.count; ++round) {
    const absl::Status status = fleet->Round({}, attack);
    if (!status.ok()) {
      result["note"] = absl::StrCat("round ", round, ": ", status.message());
      return result;
    }
    progress->Advance(1);
  }
  TERSE_ASSIGN_OR_RETURN(const Evaluation evaluation, fleet->Evaluate());
  if (!evaluation.accuracy.has_value()) {
    return absl::InvalidArgumentError("the run has no accuracy to compare; use one that tells classes apart");
  }
  result["accuracy"] = *evaluation.accuracy;
  for (int64_t i = 0; i < run.rounds.clients; ++i) {
    Json& count = result[i < cell.hostile ? "refused_hostile" : "refused_honest"];
    count = count.get<int64_t>() + fleet->refused()[i];
  }
  return result;
}

// The cell's result, from an earlier run of the command where that had the same settings.
absl::StatusOr<Json> FindOrRun(const RobustOptions& options, const RobustCell& cell, ProgressLine* progress) {
  const std::string path = absl::StrCat(options.out, "/", cell.key, ".json");
  const std::string data = options.data.empty() ? "rendered" : "mnist";
  progress->Begin(cell.key);
  const Json known = Json::parse(PosixFiles().Read(path).value_or(""), nullptr, /*allow_exceptions=*/false);
  if (!known.is_discarded() && known.value("run", "") == cell.run && known.value("data", "") == data) {
    progress->Skip(static_cast<double>(options.settings.rounds));
    return known;
  }
  TERSE_ASSIGN_OR_RETURN(Json result, RunCell(options, cell, progress));
  result["run"] = cell.run;
  result["data"] = data;
  TERSE_RETURN_IF_ERROR(ReplaceFile(PosixFiles(), path, {result.dump(2) + "\n"}));
  return result;
}

std::string CellText(const Json& result) {
  if (!result.at("accuracy").is_null()) return absl::StrFormat("%.3f", result.at("accuracy").get<double>());
  return absl::StartsWith(result.at("note").get<std::string>(), "round ") ? "ended" : "n/a";
}

std::string Markdown(const RobustOptions& options, const std::vector<Row>& rows,
                     const std::vector<std::vector<Json>>& results) {
  std::string text = "| rule | no attack";
  for (const RobustCell& cell : rows[0].cells) {
    if (cell.hostile > 0) {
      absl::StrAppend(&text, " | ", cell.attack->title, ", ", cell.hostile, " of ", options.settings.clients);
    }
  }
  absl::StrAppend(&text, " |\n|---");
  for (size_t i = 0; i < rows[0].cells.size(); ++i) absl::StrAppend(&text, "|---:");
  absl::StrAppend(&text, "|\n");
  for (size_t i = 0; i < rows.size(); ++i) {
    absl::StrAppend(&text, "| ", rows[i].defence->name);
    for (const Json& result : results[i]) absl::StrAppend(&text, " | ", CellText(result));
    absl::StrAppend(&text, " |\n");
  }
  return text;
}

absl::StatusOr<int> RunRobust(const RobustOptions& options) {
  if (options.data.empty() && !options.results.empty()) {
    return absl::InvalidArgumentError(
        "--results is for figures of MNIST, and without --data these are of rendered digits; give --data DIR");
  }
  ConfigureThreads(1);
  ConfigureMalloc();
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(options.out));
  TERSE_ASSIGN_OR_RETURN(const std::vector<Row> rows, MakeRows(options));
  std::vector<std::vector<Json>> results;
  {
    ProgressLine progress(static_cast<double>(rows.size() * rows[0].cells.size()) *
                          static_cast<double>(options.settings.rounds));
    for (const Row& row : rows) {
      results.emplace_back();
      for (const RobustCell& cell : row.cells) {
        TERSE_ASSIGN_OR_RETURN(Json result, FindOrRun(options, cell, &progress));
        results.back().push_back(std::move(result));
      }
    }
  }
  const std::string table = Markdown(options, rows, results);
  if (!options.results.empty()) {
    std::ofstream file(options.results, std::ios::app);
    file << "\n" << table;
    if (!file.flush()) return absl::UnavailableError(absl::StrCat("cannot append to ", options.results));
  }
  if (options.json) {
    std::cout << Json(results).dump(2) << "\n";
  } else {
    std::cout << table;
  }
  return 0;
}

}  // namespace

void AddRobustCommand(CLI::App* app, Command* command) {
  auto options = std::make_shared<RobustOptions>();
  options->settings.rounds = 100;
  CLI::App* robust = app->add_subcommand(
      "robust",
      "Accuracy on MNIST of every rule of aggregation under clients that send something else than what they trained");
  robust
      ->add_option("--data", options->data,
                   "Directory of the data sets, as for `terse-bench paper`; without it rendered digits stand in for "
                   "MNIST, for a try")
      ->check(ExistingFolder());
  std::vector<std::string> names;
  for (const Defence& defence : Defences()) names.push_back(defence.name);
  robust->add_option("--only", options->only, "Only this row; may be given several times")->check(OneOf(names));
  std::vector<std::string> attacks;
  for (const Attack& attack : Attacks()) attacks.push_back(attack.name);
  robust->add_option("--attack", options->attacks, "Only this attack, beside none; may be given several times")
      ->check(OneOf(attacks));
  robust->add_option("--percent", options->percent, "Hostile clients, in percent")
      ->check(WholeNumber(1, 49))
      ->capture_default_str();
  robust->add_option("--clients", options->settings.clients)->check(WholeNumber(3, 1000))->capture_default_str();
  robust->add_option("--rounds", options->settings.rounds, "Of 10 local steps")
      ->check(WholeNumber(1, 1000000))
      ->capture_default_str();
  robust->add_option("--codec", options->settings.codec, "How clients send their updates")
      ->check(OneOf({"sbc", "stc", "top_k", "dense"}))
      ->capture_default_str();
  robust->add_option("--model", options->settings.model)
      ->check(OneOf({"perceptron", "lenet5_caffe"}))
      ->capture_default_str();
  robust->add_option("--seed", options->settings.seed, "Of weights, partition and batches")
      ->check(WholeNumber())
      ->capture_default_str();
  robust
      ->add_option("--out", options->out, "Where cells are kept; what is done with the same settings is not run again")
      ->capture_default_str();
  robust->add_option("--results", options->results, "Markdown file that the table is appended to");
  robust->add_flag("--json", options->json, "JSON for programs");
  robust->callback([options, command] { *command = [options] { return RunRobust(*options); }; });
}

}  // namespace terse
