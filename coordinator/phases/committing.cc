// Committing: aggregates the chosen updates, makes the new head durable, and only then announces it.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/aggregate.h"
#include "compression/downstream.h"
#include "coordinator/phases/phases.h"
#include "coordinator/sessions.h"
#include "core/status.h"

namespace terse {
namespace {

class Committing : public Phase {
 public:
  PhaseName name() const override { return PhaseName::kCommitting; }

  Transition Enter(RunContext& run) override {
    absl::StatusOr<std::string> aggregated = Aggregate(run);
    if (!aggregated.ok()) {
      TERSE_RETURN_IF_ERROR(Abort(run, std::string(aggregated.status().message())));
      return PhaseName::kSelecting;
    }
    std::string downstream = *std::move(aggregated);
    std::vector<float> weights = run.weights;
    // The same call as on every client, so that both hold the same bits.
    TERSE_RETURN_IF_ERROR(ApplyDownstream(*run.codec, downstream, &average_, absl::MakeSpan(weights)));

    BookWire(run);
    // Dense bytes are those of the iterations that reach the model, so an aborted round saves nothing.
    for (const auto& [client, update] : run.received) run.book.AddUp(client, 0, run.DenseBytesPerRound());
    const bool last = run.head.version + 1 >= run.config->rounds.count || run.stopping;
    Commit commit;
    commit.round = run.round;
    commit.base_version = run.head.version;
    commit.model_hash = HashWeights(weights);
    commit.downstream = std::move(downstream);
    commit.committed_us = run.Now();
    commit.ledger = run.book.Take(run.round);
    TERSE_RETURN_IF_ERROR(run.store->CommitRound(commit, /*open_next=*/!last));

    const int64_t round = run.round;
    run.weights = std::move(weights);
    run.head.version += 1;
    run.head.model_hash = commit.model_hash;
    Announce(run, std::move(commit.downstream));
    run.received.clear();
    run.round_open = !last;
    if (!last) {
      run.round += 1;
      run.round_opened_us = commit.committed_us;
    }
    FollowUp(run, round, last);
    return last ? PhaseName::kFinishing : PhaseName::kCollecting;
  }

 private:
  absl::StatusOr<std::string> Aggregate(RunContext& run) {
    std::vector<absl::string_view> messages;
    for (const auto& [client, update] : run.received) messages.push_back(update.message);
    average_.resize(run.weights.size());
    TERSE_RETURN_IF_ERROR(AverageUpdates(*run.codec, messages, AggregationThreads(messages), absl::MakeSpan(average_)));
    return BuildDownstream(run.config->downstream, messages, average_);
  }

  // Verdicts and the new model, to everyone who held the old one.
  static void Announce(RunContext& run, std::string downstream) {
    const auto message = std::make_shared<const std::string>(std::move(downstream));
    for (auto& [id, session] : run.sessions) {
      const auto it = run.received.find(session.client);
      if (it != run.received.end()) {
        session.last_applied = it->second.update_id;
        session.link->SendLater(Verdict{Outcome::kApplied, it->second.update_id, it->second.update_id, ""});
      }
      if (session.version != run.head.version - 1) continue;
      run.book.AddDown(session.client, message->size(), run.DenseBytesPerRound());
      session.link->SendLater(Delta{run.head.version, run.head.model_hash, message});
      session.version = run.head.version;
    }
  }

  // Off the round's path: evaluation and checkpoint.
  static void FollowUp(RunContext& run, int64_t round, bool last) {
    if (last || run.head.version % run.config->evaluate_every == 0) {
      run.evaluating = round;
      run.background->Evaluate(round, run.weights);
    }
    const bool due = run.head.version - run.checkpoint_version >= run.config->checkpoint_every;
    if (due && !run.checkpoint_running) {
      run.checkpoint_running = true;
      run.background->WriteCheckpoint({run.head.version, run.head.model_hash, run.weights});
    }
  }

  std::vector<float> average_;
};

}  // namespace

std::unique_ptr<Phase> MakeCommitting() { return std::make_unique<Committing>(); }

}  // namespace terse
