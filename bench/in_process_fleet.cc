#include "bench/in_process_fleet.h"

#include <utility>

#include "absl/memory/memory.h"
#include "compression/aggregate.h"
#include "compression/codec_table.h"
#include "compression/feedback_table.h"
#include "core/status.h"
#include "learning/blueprint.h"
#include "learning/local_trainer.h"

namespace terse {
namespace {

absl::Status CheckRun(const RunConfig& run) {
  const RoundPolicy& rounds = run.rounds;
  const bool all_alike = rounds.selection == Selection::kAll && rounds.weighting == Weighting::kUniform &&
                         !rounds.buffered && (rounds.cohort == 0 || rounds.cohort == rounds.clients);
  const bool plain_step = run.downstream != DownstreamMode::kCoded && run.server.name == "average";
  if (all_alike && plain_step && run.control.name == "fixed") return absl::OkStatus();
  return absl::UnimplementedError(
      "a fleet in one process takes all clients alike in every round and applies the average of their updates: it has "
      "no cohorts, weights or buffer, no coded downstream, no server optimizer and no controller. Run a real fleet: "
      "terse-coordinator --run, or terse-bench paper");
}

}  // namespace

absl::StatusOr<std::unique_ptr<InProcessFleet>> InProcessFleet::Create(const RunConfig& run, const std::string& data,
                                                                       const std::string& device) {
  TERSE_RETURN_IF_ERROR(CheckRun(run));
  auto fleet = absl::WrapUnique(new InProcessFleet(run));
  TERSE_ASSIGN_OR_RETURN(const auto blueprint, MakeBlueprint(run.model));
  fleet->weights_ = blueprint->StartWeights(run.seed);
  TERSE_ASSIGN_OR_RETURN(fleet->codec_, MakeCodec(run.codec, blueprint->layout()));
  fleet->average_.resize(fleet->weights_.size());
  const TrainerFactory make_trainer = MakeTrainerFactory(data, device);
  for (int64_t i = 0; i < run.rounds.clients; ++i) {
    Client client;
    TERSE_ASSIGN_OR_RETURN(client.trainer, make_trainer(run, Shard{i, run.rounds.clients}, ""));
    TERSE_ASSIGN_OR_RETURN(client.feedback, MakeFeedback(run.codec, fleet->codec_.get()));
    client.delta.resize(fleet->weights_.size());
    fleet->clients_.push_back(std::move(client));
  }
  return fleet;
}

absl::Status InProcessFleet::Round(const OnMessage& on_message) {
  ++round_;
  std::vector<std::string> messages;
  for (size_t i = 0; i < clients_.size(); ++i) {
    TERSE_ASSIGN_OR_RETURN(std::string message, TrainAndCompress(i));
    TERSE_RETURN_IF_ERROR(on_message(i, *clients_[i].feedback, message));
    messages.push_back(std::move(message));
  }
  const std::vector<absl::string_view> views(messages.begin(), messages.end());
  TERSE_RETURN_IF_ERROR(AverageUpdates(*codec_, views, {}, 1, absl::MakeSpan(average_)));
  for (size_t i = 0; i < weights_.size(); ++i) weights_[i] += average_[i];
  for (Client& client : clients_) TERSE_RETURN_IF_ERROR(client.feedback->Settle(true));
  return absl::OkStatus();
}

absl::StatusOr<std::string> InProcessFleet::TrainAndCompress(int64_t index) {
  Client& client = clients_[index];
  const LocalPlan plan = {run_.train.local_steps, (round_ - 1) * run_.train.local_steps};
  const auto always = [] { return true; };
  TERSE_RETURN_IF_ERROR(client.trainer->Train(weights_, plan, always, absl::MakeSpan(client.delta)).status());
  const CodecKey key = {run_.seed, static_cast<uint64_t>(round_), static_cast<uint64_t>(index)};
  TERSE_ASSIGN_OR_RETURN(std::string message, client.feedback->Compress(&client.delta, key));
  TERSE_ASSIGN_OR_RETURN(const auto positions, codec_->SentPositions(message));
  if (positions.has_value()) client.trainer->MaskMomentum(*positions);
  return message;
}

}  // namespace terse
