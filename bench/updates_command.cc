#include "bench/updates_command.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "bench/progress.h"
#include "bench/update_file.h"
#include "compression/aggregate.h"
#include "compression/codec_table.h"
#include "compression/feedback_table.h"
#include "core/status.h"
#include "learning/local_trainer.h"
#include "learning/models/model_table.h"
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

struct Client {
  std::unique_ptr<LocalTrainer> trainer;
  std::unique_ptr<Feedback> feedback;
  std::vector<float> delta;
};

// A whole fleet in one process: the rounds of a run without its wire and its disk.
class Fleet {
 public:
  static absl::StatusOr<std::unique_ptr<Fleet>> Create(const UpdatesOptions& options) {
    auto fleet = absl::WrapUnique(new Fleet(MakeRun(options.density)));
    const RunConfig& run = fleet->run_;
    TERSE_ASSIGN_OR_RETURN(fleet->weights_, InitialWeights(run.model, run.seed));
    TERSE_ASSIGN_OR_RETURN(const Layout layout, ModelLayout(run.model));
    TERSE_ASSIGN_OR_RETURN(fleet->codec_, MakeCodec(run.codec, layout));
    fleet->average_.resize(layout.size());
    const TrainerFactory make_trainer = MakeTrainerFactory(options.data, "cpu");
    for (int64_t i = 0; i < kClients; ++i) {
      Client client;
      TERSE_ASSIGN_OR_RETURN(client.trainer, make_trainer(run, Shard{i, kClients}, ""));
      TERSE_ASSIGN_OR_RETURN(client.feedback, MakeFeedback(run.codec, fleet->codec_.get()));
      client.delta.resize(layout.size());
      fleet->clients_.push_back(std::move(client));
    }
    return fleet;
  }

  // One round. Appends the clients' updates when `record` is not null.
  absl::Status Round(int64_t round, std::vector<RecordedUpdate>* record) {
    std::vector<std::string> messages;
    for (int64_t i = 0; i < kClients; ++i) {
      TERSE_ASSIGN_OR_RETURN(std::string message, TrainAndCompress(round, i));
      if (record != nullptr) {
        const absl::Span<const float> encoded = clients_[i].feedback->dense();
        TERSE_ASSIGN_OR_RETURN(auto positions, codec_->SentPositions(message));
        record->push_back({round, i, {encoded.begin(), encoded.end()}, *std::move(positions)});
      }
      messages.push_back(std::move(message));
    }
    const std::vector<absl::string_view> views(messages.begin(), messages.end());
    TERSE_RETURN_IF_ERROR(AverageUpdates(*codec_, views, {}, 1, absl::MakeSpan(average_)));
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] += average_[i];
    for (Client& client : clients_) TERSE_RETURN_IF_ERROR(client.feedback->Settle(true));
    return absl::OkStatus();
  }

  const Layout& layout() const { return codec_->layout(); }

 private:
  explicit Fleet(RunConfig run) : run_(std::move(run)) {}

  absl::StatusOr<std::string> TrainAndCompress(int64_t round, int64_t index) {
    Client& client = clients_[index];
    const LocalPlan plan = {run_.train.local_steps, round * run_.train.local_steps};
    const auto always = [] { return true; };
    TERSE_RETURN_IF_ERROR(client.trainer->Train(weights_, plan, always, absl::MakeSpan(client.delta)).status());
    const CodecKey key = {run_.seed, static_cast<uint64_t>(round), static_cast<uint64_t>(index)};
    TERSE_ASSIGN_OR_RETURN(std::string message, client.feedback->Compress(&client.delta, key));
    TERSE_ASSIGN_OR_RETURN(const auto positions, codec_->SentPositions(message));
    client.trainer->MaskMomentum(*positions);
    return message;
  }

  const RunConfig run_;
  std::unique_ptr<const Codec> codec_;
  std::vector<float> weights_;
  std::vector<float> average_;
  std::vector<Client> clients_;
};

absl::StatusOr<int> RunUpdatesCommand(const UpdatesOptions& options) {
  ConfigureThreads(1);
  ConfigureMalloc();
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet, Fleet::Create(options));
  UpdateFile file;
  file.origin = absl::StrCat("lenet5_caffe on MNIST (iid), ", kClients, " clients, SBC with p = ", options.density,
                             ", n = 1, Adam 0.001, batch 128, seed 1");
  file.density = options.density;
  file.layout = fleet->layout();
  const int64_t last = *absl::c_max_element(options.iterations);
  Progress progress(static_cast<double>(last));
  for (int64_t round = 1; round <= last; ++round) {
    progress.Begin(absl::StrCat("iteration ", round, " of ", last));
    const bool record = absl::c_linear_search(options.iterations, round);
    TERSE_RETURN_IF_ERROR(fleet->Round(round, record ? &file.updates : nullptr));
    progress.Advance(1);
  }
  TERSE_RETURN_IF_ERROR(WriteUpdateFile(options.out, file));
  return 0;
}

}  // namespace

void AddUpdatesCommand(CLI::App* app, Command* chosen) {
  CLI::App* sub = app->add_subcommand("updates", "Train LeNet5 on MNIST with four clients and record their updates");
  const auto options = std::make_shared<UpdatesOptions>();
  sub->add_option("--data", options->data, "Directory with MNIST's IDX files")
      ->required()
      ->check(CLI::ExistingDirectory);
  sub->add_option("--out", options->out, "File to write")->required();
  sub->add_option("--iterations", options->iterations, "Record after these iterations of every client")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str();
  sub->add_option("--density", options->density, "Fraction of each tensor that is sent")
      ->check(CLI::Range(1e-6, 1.0))
      ->capture_default_str();
  sub->callback([=] { *chosen = [options] { return RunUpdatesCommand(*options); }; });
}

}  // namespace terse
