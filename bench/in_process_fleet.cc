#include "bench/in_process_fleet.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/memory/memory.h"
#include "compression/codec_table.h"
#include "compression/feedback_table.h"
#include "coordinator/aggregation/aggregation_table.h"
#include "core/median.h"
#include "core/status.h"
#include "learning/datasets/dataset_table.h"
#include "learning/evaluator.h"
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
      "a fleet in one process takes all clients alike in every round and applies what comes of their updates: it has "
      "no cohorts, weights or buffer, no coded downstream, no server optimizer and no controller. Run a real fleet: "
      "terse-coordinator --run-file, or terse-bench paper");
}

}  // namespace

absl::StatusOr<std::unique_ptr<InProcessFleet>> InProcessFleet::Create(const RunConfig& run, const std::string& data,
                                                                       const std::string& device, int workers) {
  TERSE_RETURN_IF_ERROR(CheckRun(run));
  auto fleet = absl::WrapUnique(new InProcessFleet(run, data, device, workers));
  TERSE_ASSIGN_OR_RETURN(fleet->blueprint_, MakeBlueprint(run.model));
  fleet->weights_ = fleet->blueprint_->StartWeights(run.seed);
  TERSE_ASSIGN_OR_RETURN(fleet->codec_, MakeCodec(run.codec, fleet->blueprint_->layout()));
  TERSE_ASSIGN_OR_RETURN(fleet->rule_, MakeAggregationRule(run.aggregation));
  fleet->step_.resize(fleet->weights_.size());
  fleet->refused_.resize(run.rounds.clients);
  TERSE_ASSIGN_OR_RETURN(const TrainerFactory make_trainer, MakeTrainerFactory(data, device));
  for (int64_t i = 0; i < run.rounds.clients; ++i) {
    Client client;
    TERSE_ASSIGN_OR_RETURN(client.trainer, make_trainer(run, Shard{i, ShardsOf(run).value_or(1)}, ""));
    TERSE_ASSIGN_OR_RETURN(client.feedback, MakeFeedback(run.codec, fleet->codec_.get()));
    client.delta.resize(fleet->weights_.size());
    fleet->clients_.push_back(std::move(client));
  }
  return fleet;
}

absl::Status InProcessFleet::Round(const OnMessage& on_message, const OnDeltas& on_deltas) {
  ++round_;
  TERSE_RETURN_IF_ERROR(TrainAll());
  std::vector<absl::Span<float>> deltas;
  for (Client& client : clients_) {
    deltas.push_back(client.aside ? absl::Span<float>() : absl::MakeSpan(client.delta));
  }
  if (on_deltas) on_deltas(deltas);
  std::vector<std::string> messages(clients_.size());
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i].aside) continue;
    TERSE_ASSIGN_OR_RETURN(std::string message, Compress(i));
    if (on_message) TERSE_RETURN_IF_ERROR(on_message(i, *clients_[i].feedback, message));
    messages[i] = std::move(message);
  }
  return Step(messages);
}

absl::Status InProcessFleet::TrainAll() {
  std::vector<absl::Status> trained(clients_.size());
  std::atomic<size_t> next{0};
  const auto train = [&] {
    for (size_t i = next++; i < clients_.size(); i = next++) {
      if (!clients_[i].aside) trained[i] = Train(&clients_[i]);
    }
  };
  std::vector<std::thread> others;
  const size_t workers = std::min(static_cast<size_t>(workers_), clients_.size());
  for (size_t i = 1; i < workers; ++i) others.emplace_back(train);
  train();
  for (std::thread& other : others) other.join();
  for (const absl::Status& status : trained) TERSE_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status InProcessFleet::Train(Client* client) {
  const LocalPlan plan = {run_.train.local_steps, (round_ - 1) * run_.train.local_steps};
  const auto always = [] { return true; };
  return client->trainer->Train(weights_, plan, always, absl::MakeSpan(client->delta)).status();
}

absl::StatusOr<std::string> InProcessFleet::Compress(int64_t index) {
  Client& client = clients_[index];
  const CodecKey key = {run_.seed, static_cast<uint64_t>(round_), static_cast<uint64_t>(index)};
  client.feedback->Observe(weights_, client.delta);
  TERSE_ASSIGN_OR_RETURN(std::string message, client.feedback->Compress(&client.delta, key));
  TERSE_ASSIGN_OR_RETURN(const auto positions, codec_->SentPositions(message));
  if (positions.has_value()) client.trainer->MaskMomentum(*positions);
  return message;
}

absl::Status InProcessFleet::Step(const std::vector<std::string>& messages) {
  std::vector<size_t> senders;
  std::vector<MeasuredUpdate> updates;
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i].aside) continue;
    TERSE_ASSIGN_OR_RETURN(const UpdateSize size, codec_->Measure(messages[i]));
    senders.push_back(i);
    updates.push_back({messages[i], size});
  }
  NoteRatios(updates);
  TERSE_ASSIGN_OR_RETURN(const std::vector<Judgement> judgements, JudgeUpdates(*codec_, updates, run_.policy));
  std::vector<absl::string_view> accepted;
  for (size_t k = 0; k < senders.size(); ++k) {
    Client& client = clients_[senders[k]];
    if (judgements[k].reason.empty()) {
      accepted.push_back(updates[k].message);
      TERSE_RETURN_IF_ERROR(client.feedback->Settle(true));
    } else {
      client.feedback->Reset();
      client.aside = judgements[k].grave && run_.clients.set_aside_after > 0;
      ++refused_[senders[k]];
    }
  }
  if (accepted.empty()) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(rule_->Aggregate(*codec_, accepted, {}, absl::MakeSpan(step_)));
  for (size_t i = 0; i < weights_.size(); ++i) weights_[i] += step_[i];
  return absl::OkStatus();
}

absl::StatusOr<Evaluation> InProcessFleet::Evaluate() {
  if (evaluator_ == nullptr) {
    TERSE_ASSIGN_OR_RETURN(Dataset dataset, LoadDataset(run_.data, data_));
    TERSE_ASSIGN_OR_RETURN(
        evaluator_, MakeEvaluator(run_, blueprint_, std::make_shared<const Dataset>(std::move(dataset)), device_));
  }
  return evaluator_->Evaluate(weights_);
}

void InProcessFleet::NoteRatios(absl::Span<const MeasuredUpdate> updates) {
  std::vector<double> norms;
  for (const MeasuredUpdate& update : updates) norms.push_back(update.size.norm);
  if (norms.empty()) return;
  const double largest = *std::max_element(norms.begin(), norms.end());
  const double median = MedianOf(absl::MakeSpan(norms));
  if (median == 0 || largest / median <= largest_ratio_) return;
  largest_ratio_ = largest / median;
  largest_ratio_round_ = round_;
}

}  // namespace terse
