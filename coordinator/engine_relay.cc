// The part of the engine that only a relay's has: its rounds are ordered from above, and so are its models.
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/catch_up.h"
#include "coordinator/engine.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {

absl::Status Engine::SettleLeftRound(const RoundRecord& round) {
  if (round.state == RoundState::kCommitted || round.state == RoundState::kAborted) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const int64_t newest, run_.relay->setup.upstream->SealedRound(run_.lineage));
  if (round.state == RoundState::kClosed) TERSE_FAILPOINT("relay.restart.closed_round");
  const bool sealed = round.state == RoundState::kClosed && round.id <= newest;
  if (!sealed)
    return run_.store()->AbortRound(round.id, "the relay stopped before the round's result was sealed", run_.Now());
  Commit commit;
  commit.round = round.id;
  commit.base_version = round.base_version;
  commit.committed_us = run_.Now();
  return run_.store()->CommitRound(commit, /*open_next=*/false);
}

Transition Engine::On(RoundOrdered event) {
  if (event.order.base_version != run_.model.head().version) {
    run_.journal.Later([upstream = run_.relay->setup.upstream,
                        reason = absl::StrCat("a round is ordered from version ", event.order.base_version,
                                              ", and the relay's model is at ", run_.model.head().version)] {
      upstream->Decline(reason);
    });
    return absl::nullopt;
  }
  TERSE_FAILPOINT("relay.order.received");
  if (!run_.relay->order.has_value()) run_.relay->ordered_us = run_.MonotonicNow();
  run_.relay->order = std::move(event.order);
  return phase_->OnTick(run_);
}

Transition Engine::On(OrderWithdrawn event) {
  run_.relay->order = absl::nullopt;
  // The client half has not taken the result of a closed round then, and never will.
  if (phase_->name() == PhaseName::kCommitting) {
    return phase_->OnHandedUp(run_, {run_.round.number(), absl::CancelledError(event.reason)});
  }
  return phase_->OnAbort(run_, event.reason);
}

Transition Engine::On(HandedUp event) { return phase_->OnHandedUp(run_, event); }

// A message that does not lead to the model that it names was damaged: the session above finds that too, and downloads
// the model.
Transition Engine::On(ModelMoved event) {
  const Downstream& message = event.message;
  if (message.version != run_.model.head().version + 1) return absl::nullopt;
  std::vector<float> weights = run_.model.weights();
  const absl::Status applied = run_.model.server().Apply(*message.message, absl::MakeSpan(weights));
  if (!applied.ok() || HashWeights(weights) != message.model_hash) {
    TERSE_RETURN_IF_ERROR(run_.Note(event::kModelDrift, -1, absl::StrCat("on the way to version ", message.version)));
    return absl::nullopt;
  }
  TERSE_RETURN_IF_ERROR(run_.store()->AppendMessage({message.version, message.model_hash, *message.message}));
  TERSE_FAILPOINT("relay.model.moved");
  run_.model.Advance(std::move(weights), message.model_hash, message.message);
  const Fleet::Bulk bulk(&run_.fleet);
  run_.fleet.SetHead(run_.model.head().version);
  TERSE_RETURN_IF_ERROR(SpreadHead(run_, message.message));
  BeginCheckpointIfDue(run_);
  return absl::nullopt;
}

Transition Engine::On(RunEndedAbove event) { return End(RunState::kFinished, event.reason); }

absl::Status Engine::ReplaceModel(int64_t version, std::vector<float> weights) {
  if (version <= run_.model.head().version) return absl::OkStatus();
  if (run_.model.checkpoint_running()) return absl::UnavailableError("a checkpoint is being written");
  const Id128 hash = HashWeights(weights);
  TERSE_RETURN_IF_ERROR(run_.store()->ReplaceHead({version, hash, weights}));
  run_.model.Replace(version, std::move(weights), hash);
  return InBatch([&]() -> absl::Status {
    {
      const Fleet::Bulk bulk(&run_.fleet);
      run_.fleet.SetHead(version);
    }
    for (const auto& [id, session] : run_.fleet.sessions()) {
      if (!session->refused() && session->version().has_value()) TERSE_RETURN_IF_ERROR(BringUp(run_, *session));
    }
    return absl::OkStatus();
  });
}

}  // namespace terse
