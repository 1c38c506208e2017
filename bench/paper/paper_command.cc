#include "bench/paper/paper_command.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/measure.h"
#include "bench/paper/bits_to_loss.h"
#include "bench/paper/fleet.h"
#include "bench/paper/paper_report.h"
#include "bench/paper/paper_table.h"
#include "bench/paper/sent_elements.h"
#include "core/cli/progress_line.h"
#include "core/file_system.h"
#include "core/status.h"

namespace terse {
namespace {

struct PaperOptions {
  std::string table;
  std::string data;
  PaperScale scale;
  std::vector<std::string> only;
  std::string out = "out/paper";
  std::string results;
  std::string run_files;
  std::string device = "auto";
  int workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  bool json = false;
  bool list = false;
};

const PaperTable* FindTable(const std::string& name) {
  for (const PaperTable& table : PaperTables()) {
    if (table.name == name) return &table;
  }
  return nullptr;
}

// The rows that `only` names by workload, method or both ("lenet5-sbc1"); all when it is empty. INVALID_ARGUMENT for a
// name of no row.
absl::StatusOr<std::vector<PaperRow>> ChooseRows(const PaperTable& table, const PaperOptions& options) {
  std::vector<PaperRow> rows;
  std::vector<std::string> known;
  std::set<std::string> unknown(options.only.begin(), options.only.end());
  for (const PaperWorkload& workload : table.workloads) {
    known.push_back(workload.name);
    for (size_t i = 0; i < table.methods.size(); ++i) {
      PaperRow row = MakePaperRow(table, workload, i, options.scale);
      bool chosen = options.only.empty();
      for (const std::string& name : options.only) {
        if (name != workload.name && name != row.method->name && name != row.key) continue;
        chosen = true;
        unknown.erase(name);
      }
      if (chosen) rows.push_back(std::move(row));
    }
  }
  for (const PaperMethod& method : table.methods) known.push_back(method.name);
  if (unknown.empty()) return rows;
  return absl::InvalidArgumentError(absl::StrCat("--only ", *unknown.begin(), " is no row of ", table.name,
                                                 "; it has: ", absl::StrJoin(known, ", "), ", and MODEL-METHOD"));
}

// Empty where there is no such file.
std::string ReadText(const std::string& path) { return PosixFiles().Read(path).value_or(""); }

// The summary of a row that was run before with the same settings.
absl::optional<nlohmann::ordered_json> KnownSummary(const PaperRow& row, const std::string& directory) {
  if (ReadText(absl::StrCat(directory, "/run.toml")) != row.run) return absl::nullopt;
  const auto summary =
      nlohmann::ordered_json::parse(ReadText(absl::StrCat(directory, "/summary.json")), nullptr, /*exceptions=*/false);
  if (summary.is_discarded()) return absl::nullopt;
  return summary;
}

// Mean over the last tenth of the committed rounds; null when one of them has none.
nlohmann::ordered_json LastTrainLoss(const std::vector<v1::Round>& rounds) {
  std::vector<double> losses;
  for (const v1::Round& round : rounds) {
    if (round.state() != "committed") continue;
    losses.push_back(round.has_train_loss() ? round.train_loss() : std::numeric_limits<double>::quiet_NaN());
  }
  const size_t count = std::max<size_t>(1, losses.size() / 10);
  if (losses.empty()) return nullptr;
  const double sum = std::accumulate(losses.end() - static_cast<ptrdiff_t>(count), losses.end(), 0.0);
  if (!std::isfinite(sum)) return nullptr;
  return sum / static_cast<double>(count);
}

// Returns the median over the committed rounds, so that neither evaluations nor the time in which the run stood still
// count; null when no round took any time. Each client does as many iterations.
nlohmann::ordered_json IterationsASecond(const std::vector<v1::Round>& rounds, double steps_each) {
  std::vector<double> rates;
  for (const v1::Round& round : rounds) {
    const auto microseconds = static_cast<double>(round.committed_us() - round.opened_us());
    if (round.state() != "committed" || microseconds <= 0) continue;
    rates.push_back(1e6 * (round.local_steps() > 0 ? round.local_steps() : steps_each) / microseconds);
  }
  if (rates.empty()) return nullptr;
  return Median(std::move(rates));
}

// Every client takes part in every round of these tables. A row whose controller changes what is sent has no such
// figure, because SentElements counts what one density sends.
absl::Status AddBitsAnElement(PaperResult* result) {
  TERSE_ASSIGN_OR_RETURN(const int64_t elements, SentElements(result->row));
  const double messages = static_cast<double>(result->row.rounds);
  result->summary["bits_an_element"] = 8 * PayloadUpPerClient(*result) / (messages * static_cast<double>(elements));
  return absl::OkStatus();
}

absl::StatusOr<PaperResult> RunRow(const PaperOptions& options, const PaperRow& row, ProgressLine* progress) {
  const std::string directory = absl::StrCat(options.out, "/", row.table->name, "/", row.key, "-", row.iterations,
                                             "-seed", options.scale.seed, options.data.empty() ? "-rendered" : "");
  const double work = static_cast<double>(row.iterations);
  progress->Begin(row.key);
  if (auto known = KnownSummary(row, directory); known.has_value()) {
    progress->Skip(work);
    return PaperResult{row, *std::move(known)};
  }
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(directory));
  FleetOptions fleet;
  fleet.run_file = absl::StrCat(directory, "/run.toml");
  fleet.directory = directory;
  fleet.data = options.data;
  fleet.device = options.device;
  fleet.clients = row.workload->clients;
  fleet.workers = options.workers;
  fleet.link_bytes_per_second = row.workload->link_bytes_per_second;
  const std::string before = ReadText(fleet.run_file);
  if (!before.empty() && before != row.run) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " holds this row with other settings (an earlier ",
                     "release, or a budget of another grid); move it away, or choose another --out"));
  }
  TERSE_RETURN_IF_ERROR(ReplaceFile(PosixFiles(), fleet.run_file, {row.run}));
  // A controller says with every round how long it is.
  TERSE_ASSIGN_OR_RETURN(const FleetResult ended, RunFleet(fleet, [&](const v1::Round& round, bool earlier) {
                           const double done = round.local_steps() > 0 ? round.local_steps() : work / row.rounds;
                           earlier ? progress->Skip(done) : progress->Advance(done);
                         }));
  PaperResult result = {row, SummaryJson(ended.summary)};
  result.summary["train_loss"] = LastTrainLoss(ended.rounds);
  result.summary["iterations_a_second"] = IterationsASecond(ended.rounds, work / static_cast<double>(row.rounds));
  if (row.table->columns == PaperColumns::kLossAndBytes && row.method->control.empty()) {
    TERSE_RETURN_IF_ERROR(AddBitsAnElement(&result));
  }
  if (row.workload->target_loss > 0) {
    result.summary.update(BitsToLoss(ended.rounds, row.workload->target_loss, row.workload->epoch_length));
  }
  TERSE_RETURN_IF_ERROR(ReplaceFile(PosixFiles(), absl::StrCat(directory, "/rounds.csv"), {RoundsCsv(ended.rounds)}));
  TERSE_RETURN_IF_ERROR(
      ReplaceFile(PosixFiles(), absl::StrCat(directory, "/summary.json"), {result.summary.dump(2) + "\n"}));
  return result;
}

// Makes the row anew, with its share of what the best fixed row of its workload sent.
absl::Status SetBudget(const std::vector<PaperResult>& results, PaperScale scale, PaperRow* row) {
  const std::optional<BestFixed> best = BestFixedOf(results, *row->workload);
  if (!best.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(row->key,
                                                   " gets a share of what the best fixed row sent, and none was "
                                                   "run; use --only ",
                                                   row->workload->name));
  }
  scale.budget = row->method->budget_share * PayloadUpPerClient(results[best->row]);
  const auto method = static_cast<size_t>(row->method - row->table->methods.data());
  *row = MakePaperRow(*row->table, *row->workload, method, scale);
  return absl::OkStatus();
}

// Writes a run file for each row, for other commands. A row with a share of what another one sends has none before that
// has run.
absl::Status WriteRunFiles(const std::vector<PaperRow>& rows, const std::string& directory) {
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(directory));
  for (const PaperRow& row : rows) {
    if (row.method->budget_share > 0) {
      std::cerr << "terse-bench: left out " << row.key << ", whose budget is known once the fixed rows have run\n";
      continue;
    }
    TERSE_RETURN_IF_ERROR(ReplaceFile(PosixFiles(), absl::StrCat(directory, "/", row.key, ".toml"), {row.run}));
  }
  return absl::OkStatus();
}

std::string CommandLine(const PaperOptions& options) {
  std::string line = absl::StrCat("build/release/bin/terse-bench paper ", options.table, " --data DIR");
  if (options.scale.scale < 1) absl::StrAppend(&line, " --scale ", options.scale.scale);
  if (options.scale.seed != 1) absl::StrAppend(&line, " --seed ", options.scale.seed);
  if (options.scale.server_rate > 0) absl::StrAppend(&line, " --server-rate ", options.scale.server_rate);
  if (options.scale.evaluations != PaperScale().evaluations) {
    absl::StrAppend(&line, " --evaluations ", options.scale.evaluations);
  }
  for (const std::string& name : options.only) absl::StrAppend(&line, " --only ", name);
  return line;
}

absl::Status Record(const PaperOptions& options, const std::vector<PaperResult>& results) {
  if (options.results.empty() || options.data.empty()) return absl::OkStatus();
  const std::string section = PaperSection(results, options.scale, CommandLine(options));
  std::ofstream file(options.results, std::ios::app);
  file << "\n" << section;
  if (!file.flush()) return absl::UnavailableError(absl::StrCat("cannot append to ", options.results));
  std::cerr << "terse-bench: appended to " << options.results << "\n";
  return absl::OkStatus();
}

absl::StatusOr<int> RunPaper(const PaperOptions& options) {
  const PaperTable& table = *FindTable(options.table);
  TERSE_ASSIGN_OR_RETURN(std::vector<PaperRow> rows, ChooseRows(table, options));
  if (options.list) {
    for (const PaperRow& row : rows) std::cout << row.key << "\n";
    return 0;
  }
  if (!options.run_files.empty()) {
    TERSE_RETURN_IF_ERROR(WriteRunFiles(rows, options.run_files));
    return 0;
  }
  if (options.data.empty()) {
    std::cerr << "terse-bench: without --data these are rendered digits, not the paper's data"
              << (options.results.empty() ? "" : absl::StrCat(", and nothing is appended to ", options.results))
              << "\n";
  }
  std::vector<PaperResult> results;
  {
    double work = 0;
    for (const PaperRow& row : rows) work += static_cast<double>(row.iterations);
    ProgressLine progress(work);
    for (PaperRow& row : rows) {
      if (row.method->budget_share > 0) TERSE_RETURN_IF_ERROR(SetBudget(results, options.scale, &row));
      TERSE_ASSIGN_OR_RETURN(PaperResult result, RunRow(options, row, &progress));
      results.push_back(std::move(result));
    }
  }
  if (options.json) {
    std::cout << PaperJson(results, options.scale).dump(2) << "\n";
  } else {
    std::cout << PaperMarkdown(results);
  }
  TERSE_RETURN_IF_ERROR(Record(options, results));
  return 0;
}

}  // namespace

void AddPaperCommand(CLI::App* app, Command* command) {
  auto options = std::make_shared<PaperOptions>();
  if (std::ifstream("bench/RESULTS.md").good()) options->results = "bench/RESULTS.md";
  CLI::App* paper =
      app->add_subcommand("paper", "Reruns a table or figure of a paper with real fleets on this machine");
  std::vector<std::string> names;
  for (const PaperTable& table : PaperTables()) names.push_back(table.name);
  paper->add_option("TABLE", options->table, "Which")->required()->check(OneOf(names));
  paper
      ->add_option(
          "--data", options->data,
          "Directory of the data sets (mnist, cifar10, a9a, ptb, shakespeare); without it rendered digits stand in "
          "for MNIST, for a try")
      ->check(ExistingFolder());
  paper->add_option("--scale", options->scale.scale, "Fraction of the paper's iterations")
      ->check(Number(1e-6, 1.0))
      ->capture_default_str();
  paper->add_option("--only", options->only, "Only this model, method or MODEL-METHOD; may be given several times");
  paper->add_option("--seed", options->scale.seed, "Of weights, partition and batches")
      ->check(WholeNumber())
      ->capture_default_str();
  paper
      ->add_option("--server-rate", options->scale.server_rate,
                   "The server's learning rate in all rows of a table that has one (double-quantization), to tune it; "
                   "0: the table's")
      ->check(Number(0.0, 1e6))
      ->capture_default_str();
  paper
      ->add_option("--evaluations", options->scale.evaluations,
                   "How often a run is evaluated, at least, and always at its end; few for a large model and few "
                   "iterations, where evaluating takes longer than training")
      ->check(WholeNumber(1, 1'000'000))
      ->capture_default_str();
  paper
      ->add_option("--out", options->out,
                   "Where runs are kept: what was stopped goes on, what is done is not run again")
      ->capture_default_str();
  paper->add_option("--results", options->results, "Markdown file that the result is appended to; '' for none")
      ->capture_default_str();
  paper->add_option("--workers", options->workers, "Processes that share the clients")
      ->check(WholeNumber(1, 1024))
      ->capture_default_str();
  paper->add_option("--device", options->device, "Where to train")
      ->check(OneOf({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  paper->add_flag("--json", options->json, "JSON for programs");
  paper->add_flag("--list", options->list, "Only list the rows");
  paper->add_option("--run-files", options->run_files,
                    "Only write the rows' run files into this folder, for other commands");
  paper->callback([options, command] { *command = [options] { return RunPaper(*options); }; });
}

}  // namespace terse
