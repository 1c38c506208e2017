#include "coordinator/phases/phase.h"

#include "coordinator/phases/phases.h"
#include "coordinator/sessions.h"
#include "core/status.h"

namespace terse {

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

std::unique_ptr<Phase> MakePhase(PhaseName name) {
  switch (name) {
    case PhaseName::kSelecting:
      return MakeSelecting();
    case PhaseName::kCollecting:
      return MakeCollecting();
    case PhaseName::kCommitting:
      return MakeCommitting();
    case PhaseName::kFinishing:
      return MakeFinishing();
  }
  return nullptr;
}

Transition Phase::OnUpdate(RunContext& run, Session& session, Update update) {
  TERSE_RETURN_IF_ERROR(AnswerLate(run, session, update));
  return absl::nullopt;
}

absl::Status AnswerLate(RunContext& run, Session& session, const Update& update) {
  // The predecessor is part of the id, so an id that can be made again from ours shows that both ends agree about it.
  const Id128 expected = MakeUpdateId(run.lineage, update.round, session.client, session.last_applied, update.message);
  if (update.update_id != session.last_applied && update.update_id != expected) {
    Refuse(session, "the update does not follow the last applied one or is damaged; check in again", /*retry=*/true);
    return run.Note("update_rejected", session.client, "update id does not fit its content");
  }
  TERSE_ASSIGN_OR_RETURN(const Verdict verdict, Settle(run.store, session.client, session.last_applied,
                                                       update.update_id, update.round, session.last_applied));
  if (verdict.outcome == Outcome::kNotApplied) {
    TERSE_RETURN_IF_ERROR(run.store->RecordNotApplied(session.client));
    TERSE_RETURN_IF_ERROR(run.Note("update_late", session.client, absl::StrCat("for round ", update.round)));
  }
  session.link->Send(verdict);
  return absl::OkStatus();
}

absl::Status Abort(RunContext& run, const std::string& reason) {
  TERSE_RETURN_IF_ERROR(run.store->AbortRound(run.round, reason, run.Now()));
  if (run.on_event) run.on_event({run.Now(), "round_aborted", run.round, -1, reason});  // the store has the row
  run.round_open = false;
  BookWire(run);
  TERSE_RETURN_IF_ERROR(run.store->AddLedger(run.book.Take(run.round)));
  for (const auto& [client, update] : run.received) TERSE_RETURN_IF_ERROR(run.store->RecordNotApplied(client));
  for (auto& [id, session] : run.sessions) {
    const auto it = run.received.find(session.client);
    if (it == run.received.end()) continue;
    session.link->Send(Verdict{Outcome::kNotApplied, it->second.update_id, session.last_applied, reason});
  }
  run.received.clear();
  return absl::OkStatus();
}

}  // namespace terse
