#include "bench/positions_command.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/in_process_fleet.h"
#include "bench/paper/sbc_tables.h"
#include "bench/position_meter.h"
#include "bench/position_tally.h"
#include "bench/report.h"
#include "bench/stop_request.h"
#include "bench/synthetic.h"
#include "bench/update_file.h"
#include "compression/position_coder_table.h"
#include "core/cli/progress_line.h"
#include "core/status.h"
#include "learning/runtime.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"

namespace terse {
namespace {

struct PositionsOptions {
  std::string updates;
  std::string model;
  std::string data;
  int64_t steps = 10;
  double density = 0.01;
  int64_t clients = 0;
  int64_t rounds = 0;
  PaperScale scale;
  std::string device = "auto";
  bool json = false;
};

void Print(const PositionsOptions& options, const Report& report) {
  if (options.json) {
    report.PrintJson(&std::cout);
  } else {
    report.PrintTables(&std::cout);
  }
}

// The positions of one tensor, counted from its first element.
std::vector<uint32_t> InTensor(const std::vector<uint32_t>& positions, const TensorSpec& tensor) {
  const auto begin = std::lower_bound(positions.begin(), positions.end(), static_cast<uint32_t>(tensor.offset));
  const auto end = std::lower_bound(begin, positions.end(), static_cast<uint32_t>(tensor.offset + tensor.size));
  std::vector<uint32_t> local(begin, end);
  for (uint32_t& position : local) position -= static_cast<uint32_t>(tensor.offset);
  return local;
}

// Returns the bits of every coder in table order, and the bound behind them.
std::vector<CoderBits> AllCosts(const std::vector<uint32_t>& positions, int64_t size) {
  std::vector<PositionCost> costs = PositionCosts(positions, size);
  const auto count = static_cast<int64_t>(positions.size());
  costs.push_back({kPositionBound, PositionEntropy(count, size)});
  std::vector<CoderBits> bits;
  for (const PositionCost& cost : costs) bits.push_back({cost.coder, cost.bits_per_position * positions.size()});
  return bits;
}

absl::StatusOr<int> MeasureRecorded(const PositionsOptions& options) {
  TERSE_ASSIGN_OR_RETURN(const UpdateFile file, ReadUpdateFile(options.updates));
  std::map<int64_t, std::vector<const RecordedUpdate*>> by_iteration;
  for (const RecordedUpdate& update : file.updates) by_iteration[update.iteration].push_back(&update);
  Report report;
  report.subject = file.origin;
  for (const auto& [iteration, updates] : by_iteration) {
    const std::string table = absl::StrCat("bits per position, iteration ", iteration);
    PositionTally all;
    for (const TensorSpec& tensor : file.layout.tensors()) {
      PositionTally tally;
      for (const RecordedUpdate* update : updates) {
        const std::vector<uint32_t> positions = InTensor(update->positions, tensor);
        if (!positions.empty()) tally.Add(positions.size(), AllCosts(positions, tensor.size));
      }
      tally.Report(absl::StrCat(tensor.name, " (", tensor.size, ")"), table, &report.metrics);
      all.Add(tally);
    }
    all.Report("all", table, &report.metrics);
  }
  Print(options, report);
  return 0;
}

// A run of SBC's Table II with any n and p, or the beginning of one.
struct MeasuredRun {
  RunConfig config;
  int64_t rounds = 0;  // that are made
  std::string subject;
};

absl::StatusOr<MeasuredRun> ChooseRun(const PositionsOptions& options) {
  const std::vector<PaperWorkload> workloads = SbcWorkloads();
  PaperWorkload workload = *std::find_if(workloads.begin(), workloads.end(),
                                         [&](const PaperWorkload& known) { return known.name == options.model; });
  if (options.clients > 0) workload.clients = options.clients;
  const std::string title = absl::StrCat("SBC with n = ", options.steps, ", p = ", options.density);
  PaperTable table = {"positions", "hyperparameters of Sattler et al. 2018, Sparse Binary Compression", {}, {}};
  table.methods = {SbcMethod("sbc", title, options.steps, absl::StrCat(options.density))};
  const PaperRow row = MakePaperRow(table, workload, 0, options.scale);
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig file, ParseRunConfig(row.run, absl::StrCat("run ", row.key)));
  MeasuredRun run;
  TERSE_ASSIGN_OR_RETURN(run.config, ToCore(file));
  if (run.config.train.local_steps < options.steps) {
    return absl::InvalidArgumentError(absl::StrCat("--steps ", options.steps, ": the run has only ", row.iterations,
                                                   " iterations; ask for no more, or for a larger --scale"));
  }
  if (options.rounds > row.rounds) {
    return absl::InvalidArgumentError(absl::StrCat("--rounds ", options.rounds, ": the run of ", row.iterations,
                                                   " iterations has ", row.rounds, " rounds of ", options.steps,
                                                   "; ask for no more, or for all of them without --rounds"));
  }
  run.rounds = options.rounds > 0 ? options.rounds : row.rounds;
  run.subject = absl::StrCat(workload.title, ", ", title, ", ", workload.clients, " clients, seed ", options.scale.seed,
                             ", ", run.rounds, " of ", row.rounds, " rounds",
                             options.data.empty() ? "; rendered digits, not the paper's data" : "");
  return run;
}

absl::StatusOr<int> MeasureRun(const PositionsOptions& options) {
  ConfigureThreads(1);
  ConfigureMalloc();
  TERSE_ASSIGN_OR_RETURN(const MeasuredRun run, ChooseRun(options));
  TERSE_ASSIGN_OR_RETURN(const auto fleet, InProcessFleet::Create(run.config, options.data, options.device));
  PositionMeter meter(&fleet->codec(), run.config.rounds.clients, run.rounds);
  StopOnSignals();
  int64_t done = 0;
  {
    ProgressLine progress(static_cast<double>(run.rounds));
    while (done < run.rounds && !StopRequested().load()) {
      const int64_t round = done + 1;
      progress.Begin(absl::StrCat("round ", round, " of ", run.rounds));
      TERSE_RETURN_IF_ERROR(fleet->Round([&](int64_t client, const Feedback&, const std::string& message) {
        return meter.Add(round, client, message);
      }));
      ++done;
      progress.Advance(1);
    }
  }
  Report report;
  report.subject = run.subject;
  if (done < run.rounds) absl::StrAppend(&report.subject, "; stopped after ", done, ": no whole run");
  meter.Report(&report.metrics);
  Print(options, report);
  return done < run.rounds ? 1 : 0;
}

// The options that make a run and what goes with it.
void AddRunOptions(CLI::App* sub, PositionsOptions* options, CLI::Option* model) {
  const auto add = [sub, model](const std::string& name, auto* value, const std::string& text) {
    return sub->add_option(name, *value, text)->needs(model);
  };
  const CLI::Validator positive = WholeNumber(1, 1000000);
  add("--data", &options->data,
      "Directory of the data sets, as for `terse-bench paper`; without it rendered digits stand in for MNIST")
      ->check(ExistingFolder());
  add("--steps", &options->steps, "n: local steps a round")->check(positive)->capture_default_str();
  add("--density", &options->density, "p: fraction of each tensor that is sent")
      ->check(Number(1e-6, 1.0))
      ->capture_default_str();
  add("--scale", &options->scale.scale, "Fraction of the paper's iterations, with its schedule shortened alike")
      ->check(Number(1e-6, 1.0))
      ->capture_default_str();
  add("--rounds", &options->rounds, "Only so many rounds from the run's beginning")->check(positive);
  add("--clients", &options->clients, "Instead of the paper's four")->check(positive);
  add("--seed", &options->scale.seed, "Of weights, partition and batches")->check(WholeNumber())->capture_default_str();
  add("--device", &options->device, "Where to train")->check(OneOf({"auto", "cpu", "cuda"}))->capture_default_str();
}

}  // namespace

void AddPositionsCommand(CLI::App* app, Command* chosen) {
  CLI::App* sub = app->add_subcommand("positions", "Bits a position of position coders, on updates of real trainings");
  const auto options = std::make_shared<PositionsOptions>();
  std::vector<std::string> models;
  for (const PaperWorkload& workload : SbcWorkloads()) models.push_back(workload.name);
  CLI::Option_group* source = sub->add_option_group("Source", "What is measured");
  source->add_option("--updates", options->updates, "Every coder, on a file of `terse-bench updates`")
      ->check(ExistingFile());
  CLI::Option* model =
      source->add_option("--model", options->model, "Rice, auto and the shared coder, over a run made here")
          ->check(OneOf(models));
  source->require_option(1);
  AddRunOptions(sub, options.get(), model);
  sub->add_flag("--json", options->json, "JSON for programs");
  sub->callback([=] {
    *chosen = [options] { return options->model.empty() ? MeasureRecorded(*options) : MeasureRun(*options); };
  });
}

}  // namespace terse
