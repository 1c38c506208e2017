#include "bench/train_command.h"

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/in_process_fleet.h"
#include "bench/report.h"
#include "bench/stop_request.h"
#include "core/cli/progress_line.h"
#include "core/status.h"
#include "learning/runtime.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"

namespace terse {
namespace {

struct TrainOptions {
  std::string run;
  std::string data;
  std::string device = "cpu";
  int workers = 1;
  bool json = false;
};

// A row of the table: how good the model is after a round, and what a client has sent until then.
void AddRow(int64_t round, const RunConfig& run, const Evaluation& evaluation, double payload, Report* report) {
  const std::string setting = absl::StrCat("round ", round);
  const auto add = [&](const char* name, double value) {
    report->metrics.push_back({name, setting, value, {}, "after each evaluated round"});
  };
  add("iterations", static_cast<double>(round * run.train.local_steps));
  add("test_loss", evaluation.loss);
  if (evaluation.accuracy.has_value()) add("accuracy", *evaluation.accuracy);
  if (evaluation.perplexity.has_value()) add("perplexity", *evaluation.perplexity);
  add("payload_bytes_per_client", payload);
}

// UNIMPLEMENTED for a run that asks for what the command does not do.
absl::Status CheckRun(const RunConfig& run) {
  if (EndsByEvaluation(run.limits) || run.limits.seconds > 0 || run.limits.iterations > 0) {
    return absl::UnimplementedError("train goes through all rounds of a run; leave [limits] out");
  }
  if (!SharesHistory(run)) return absl::OkStatus();
  return absl::UnimplementedError(
      "train counts messages as the codec makes them, and codec.positions = 'shared' shortens them on the wire; use "
      "'auto', or run a real fleet: terse-bench paper");
}

absl::StatusOr<int> Train(const TrainOptions& options) {
  ConfigureThreads(1);
  ConfigureMalloc();
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig file, LoadRunConfig(options.run));
  TERSE_ASSIGN_OR_RETURN(const RunConfig run, ToCore(file));
  TERSE_RETURN_IF_ERROR(Annotate(CheckRun(run), options.run));
  TERSE_ASSIGN_OR_RETURN(const auto fleet, InProcessFleet::Create(run, options.data, options.device, options.workers));
  Report report;
  report.subject = absl::StrCat(run.name, ", ", run.rounds.clients, " clients, seed ", run.seed);
  int64_t payload = 0;
  const auto count = [&payload](int64_t, const Feedback&, const std::string& message) {
    payload += static_cast<int64_t>(message.size());
    return absl::OkStatus();
  };
  int64_t round = 0;
  StopOnSignals();
  {
    ProgressLine progress(static_cast<double>(run.rounds.count));
    progress.Begin(run.name);
    while (round < run.rounds.count && !StopRequested().load()) {
      ++round;
      TERSE_RETURN_IF_ERROR(Annotate(fleet->Round(count), absl::StrCat("round ", round)));
      progress.Advance(1);
      if (round % run.evaluate_every != 0 && round != run.rounds.count) continue;
      TERSE_ASSIGN_OR_RETURN(const Evaluation evaluation, fleet->Evaluate());
      AddRow(round, run, evaluation, static_cast<double>(payload) / static_cast<double>(run.rounds.clients), &report);
    }
  }
  const bool is_whole = round == run.rounds.count;
  if (!is_whole) absl::StrAppend(&report.subject, "; stopped after ", round, " of ", run.rounds.count, " rounds");
  options.json ? report.PrintJson(&std::cout) : report.PrintTables(&std::cout);
  return is_whole ? 0 : 1;
}

}  // namespace

void AddTrainCommand(CLI::App* app, Command* chosen) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* train = app->add_subcommand(
      "train",
      "How a run learns and what its clients send, all in one process without wire and disk; it does not resume");
  train->add_option("run", options->run, "Run file (TOML)")->required()->check(ExistingFile());
  train
      ->add_option("--data", options->data,
                   "Directory of the data sets, as the clients have it; without it rendered digits stand in for MNIST")
      ->check(ExistingFolder());
  train->add_option("--device", options->device, "Where to train")
      ->check(OneOf({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  train->add_option("--workers", options->workers, "Clients that train at a time; how many changes no result")
      ->check(WholeNumber(1, 1024))
      ->capture_default_str();
  train->add_flag("--json", options->json, "JSON for programs");
  train->callback([options, chosen] { *chosen = [options] { return Train(*options); }; });
}

}  // namespace terse
