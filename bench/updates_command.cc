#include "bench/updates_command.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "bench/in_process_fleet.h"
#include "bench/update_file.h"
#include "core/cli/progress_line.h"
#include "core/status.h"
#include "learning/runtime.h"

namespace terse {
namespace {

constexpr int64_t kClients = 4;

struct UpdatesOptions {
  std::string data;
  std::string out;
  std::vector<int64_t> iterations = {5, 50, 500};
  double density = 0.01;
};

// deploy/runs/lenet5-sbc1.toml with another density.
RunConfig MakeRun(double density) {
  RunConfig run;
  run.seed = 1;
  run.model.name = "lenet5_caffe";
  run.data = {"mnist", "iid"};
  run.train.local_steps = 1;
  run.train.batch_size = 128;
  run.train.optimizer = {"adam", 0.001, 0.9, 0.9, 0.999, 1e-8, /*momentum_masking=*/true};
  run.codec.name = "sbc";
  run.codec.density = density;
  run.rounds.clients = kClients;
  return run;
}

absl::StatusOr<int> RunUpdatesCommand(const UpdatesOptions& options) {
  ConfigureThreads(1);
  ConfigureMalloc();
  TERSE_ASSIGN_OR_RETURN(const auto fleet, InProcessFleet::Create(MakeRun(options.density), options.data, "cpu"));
  UpdateFile file;
  file.origin = absl::StrCat("lenet5_caffe on MNIST (iid), ", kClients, " clients, SBC with p = ", options.density,
                             ", n = 1, Adam 0.001, batch 128, seed 1");
  file.density = options.density;
  file.layout = fleet->codec().layout();
  const int64_t last = *absl::c_max_element(options.iterations);
  ProgressLine progress(static_cast<double>(last));
  for (int64_t round = 1; round <= last; ++round) {
    progress.Begin(absl::StrCat("iteration ", round, " of ", last));
    const bool record = absl::c_linear_search(options.iterations, round);
    const auto on_message = [&](int64_t client, const Feedback& feedback, const std::string& message) -> absl::Status {
      if (!record) return absl::OkStatus();
      const absl::Span<const float> encoded = feedback.dense();
      TERSE_ASSIGN_OR_RETURN(const auto positions, fleet->codec().SentPositions(message));
      file.updates.push_back({round, client, {encoded.begin(), encoded.end()}, {positions->begin(), positions->end()}});
      return absl::OkStatus();
    };
    TERSE_RETURN_IF_ERROR(fleet->Round(on_message));
    progress.Advance(1);
  }
  TERSE_RETURN_IF_ERROR(WriteUpdateFile(options.out, file));
  return 0;
}

}  // namespace

void AddUpdatesCommand(CLI::App* app, Command* chosen) {
  CLI::App* sub = app->add_subcommand("updates", "Train LeNet5 on MNIST with four clients and record their updates");
  const auto options = std::make_shared<UpdatesOptions>();
  sub->add_option("--data", options->data, "Directory with MNIST's IDX files")->required()->check(ExistingFolder());
  sub->add_option("--out", options->out, "File to write")->required();
  sub->add_option("--iterations", options->iterations, "Record after these iterations of every client")
      ->delimiter(',')
      ->check(WholeNumber(1, 1000000))
      ->capture_default_str();
  sub->add_option("--density", options->density, "Fraction of each tensor that is sent")
      ->check(Number(1e-6, 1.0))
      ->capture_default_str();
  sub->callback([=] { *chosen = [options] { return RunUpdatesCommand(*options); }; });
}

}  // namespace terse
