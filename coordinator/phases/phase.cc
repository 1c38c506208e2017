#include "coordinator/phases/phase.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/catch_up.h"
#include "coordinator/limits.h"
#include "coordinator/phases/phases.h"
#include "coordinator/sessions.h"
#include "coordinator/set_aside.h"
#include "core/epochs.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {
namespace {

// Returns the round that made the head's model, which is not version 0; aborted ones may have followed it.
absl::StatusOr<absl::optional<RoundRecord>> RoundOfHead(EngineState& run) {
  for (int64_t id = run.round.number(); id > 0; --id) {
    TERSE_ASSIGN_OR_RETURN(const std::vector<RoundRecord> found, run.store()->Rounds(id, id));
    if (!found.empty() && found[0].state == RoundState::kCommitted) return absl::make_optional(found[0]);
  }
  return absl::optional<RoundRecord>();
}

absl::Status SendHead(EngineState& run, Session& session, const std::shared_ptr<const std::string>& message) {
  if (static_cast<int64_t>(message->size()) > run.most_log_bytes) return BringUp(run, session);
  if (session.link->WaitingBytes() > run.catch_up_bytes) {
    run.fleet.SetDraining(session, true);
    run.journal.TellWhenDrained(session.link);
    return absl::OkStatus();
  }
  const Head& head = run.model.head();
  run.book().AddDown(session.client(), static_cast<int64_t>(message->size()), run.DenseBytesPerRound());
  run.journal.Say(session.link, Downstream{head.version, head.model_hash, message});
  run.fleet.SetVersion(session, head.version);
  return absl::OkStatus();
}

// The client's update is applied.
void TellClient(EngineState& run, int64_t client, const Update& update) {
  ClientNotes& notes = run.fleet.NotesOf(client);
  notes.folded = 0;
  notes.norm = update.norm;
  notes.norm_steps = run.round.plan().local_steps;
  notes.norm_choice = run.round.plan().choice;
  run.fleet.SetReliability(client, ReliabilityAfterDelivery(run.fleet.at(client).reliability));
  Session* const session = run.fleet.Of(client);
  if (session == nullptr) return;
  session->last_applied = update.update_id;
  session->applied_unheard = session->applied_unheard || !session->said_ready;
  run.journal.Say(session->link, Verdict{Outcome::kApplied, update.update_id, update.update_id, ""});
}

}  // namespace

absl::string_view PhaseTitle(PhaseName phase) {
  switch (phase) {
    case PhaseName::kSelecting:
      return "waiting for clients";
    case PhaseName::kCollecting:
      return "collecting updates";
    case PhaseName::kCommitting:
      return "committing";
    case PhaseName::kFinishing:
      return "finishing";
  }
  return "";
}

std::unique_ptr<Phase> MakePhase(PhaseName name, const EngineState& run) {
  switch (name) {
    case PhaseName::kSelecting:
      return MakeSelecting();
    case PhaseName::kCollecting:
      return run.config->rounds.buffered ? MakeBuffering() : MakeCollecting();
    case PhaseName::kCommitting:
      return run.relay.has_value() ? MakeRelaying() : MakeCommitting();
    case PhaseName::kFinishing:
      return MakeFinishing();
  }
  return nullptr;
}

Transition Phase::OnUpdate(EngineState& run, Session& session, Update update) {
  TERSE_RETURN_IF_ERROR(AnswerLate(run, session, update));
  return absl::nullopt;
}

absl::optional<Ending> EndAt(const EngineState& run, int64_t version) {
  if (version >= run.config->rounds.count) return Ending{RunState::kFinished, "all rounds are done"};
  const std::string reason = IterationsDone(run.config->limits, run.course.iterations);
  if (reason.empty()) return absl::nullopt;
  return Ending{RunState::kFinished, reason};
}

absl::Status Pause(EngineState& run, const std::string& reason) {
  run.course.paused = true;
  TERSE_RETURN_IF_ERROR(run.store()->SetRunState(RunState::kPaused, reason));
  return run.Note(event::kRunPaused, -1, reason);
}

absl::Status EvaluateHead(EngineState& run) {
  if (run.model.head().version == 0) return absl::OkStatus();  // no round made it, however many were aborted
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundRecord> round, RoundOfHead(run));
  if (!round.has_value() || round->evaluated() || run.model.evaluating().count(round->id) > 0) return absl::OkStatus();
  run.BeginEvaluation(round->id);
  return absl::OkStatus();
}

absl::Status CountNotApplied(EngineState& run, int64_t client) {
  ++run.fleet.NotesOf(client).folded;
  return run.store()->RecordNotApplied(client);
}

absl::Status RefuseUpdate(EngineState& run, Session& session, const std::string& kind, const std::string& detail,
                          const std::string& answer) {
  Refuse(run, session, answer, /*retry=*/true);
  TERSE_RETURN_IF_ERROR(run.NoteMisbehaviour(kind, session.client(), detail));
  return RecordFailure(run, session.client(), detail);
}

absl::Status AnswerLate(EngineState& run, Session& session, const Update& update) {
  if (session.owes_round() == update.round) run.fleet.SetOwed(session, 0);
  TERSE_ASSIGN_OR_RETURN(const Verdict verdict, VerdictOn(run, session.client(), session.last_applied, update.update_id,
                                                          update.round, session.last_applied));
  if (verdict.outcome == Outcome::kNotApplied) {
    run.book().AddUp(session.client(), update.payload_bytes(), /*dense_bytes=*/0);
    TERSE_RETURN_IF_ERROR(CountNotApplied(run, session.client()));
    TERSE_RETURN_IF_ERROR(
        run.NoteMisbehaviour(event::kUpdateLate, session.client(), absl::StrCat("for round ", update.round)));
  }
  run.journal.Say(session.link, verdict);
  return absl::OkStatus();
}

Transition GiveUp(EngineState& run, const std::string& reason) {
  TERSE_RETURN_IF_ERROR(Abort(run, reason));
  const int64_t unusable = ++run.course.unusable_rounds;
  if (unusable >= kMostUnusableRounds && !run.course.paused) {
    TERSE_RETURN_IF_ERROR(Pause(run, absl::StrCat(unusable, " rounds in a row gave no model: ", reason)));
  }
  return PhaseName::kSelecting;
}

void TellApplied(EngineState& run) {
  for (const auto& [client, received] : run.round.updates()) TellClient(run, client, received.update);
}

absl::Status SpreadHead(EngineState& run, const std::shared_ptr<const std::string>& message) {
  for (const auto& [id, session] : run.fleet.sessions()) {
    if (run.config->rounds.buffered && !session->IsFree()) continue;  // BringUp, once it has delivered
    if (session->version() == run.model.head().version - 1) TERSE_RETURN_IF_ERROR(SendHead(run, *session, message));
  }
  return absl::OkStatus();
}

void BeginCheckpointIfDue(EngineState& run) {
  const int64_t head = run.model.head().version;
  const bool due = head - run.model.checkpoint_version() >= run.config->checkpoint_every;
  if (due && StandsAlone(*run.config, head)) run.BeginCheckpoint();
}

absl::Status Abort(EngineState& run, const std::string& reason) {
  TERSE_FAILPOINT("coordinator.abort.before");
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundState> state, run.store()->GetRoundState(run.round.number()));
  TERSE_RETURN_IF_ERROR(run.store()->AbortRound(run.round.number(), reason, run.Now()));
  TERSE_FAILPOINT("coordinator.abort.done");
  run.Tell(event::kRoundAborted, -1, reason);
  BookWire(run);
  TERSE_RETURN_IF_ERROR(run.store()->AddLedger(run.book().Take(run.round.number())));
  const bool next_takes_them =
      run.config->rounds.buffered && state == RoundState::kOpen && !run.course.ending.has_value();
  if (!next_takes_them) {
    for (const auto& [client, received] : run.round.updates()) {
      TERSE_RETURN_IF_ERROR(CountNotApplied(run, client));
      const Session* const session = run.fleet.Of(client);
      if (session == nullptr) continue;
      run.journal.Say(session->link,
                      Verdict{Outcome::kNotApplied, received.update.update_id, session->last_applied, reason});
    }
  }
  run.SettleRound(/*keep_updates=*/next_takes_them);
  return absl::OkStatus();
}

}  // namespace terse
