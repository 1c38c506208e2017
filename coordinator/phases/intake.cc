#include "coordinator/phases/intake.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/absence.h"
#include "coordinator/sessions.h"
#include "coordinator/set_aside.h"
#include "coordinator/staleness.h"
#include "coordinator/update_policy.h"
#include "core/codec_choices.h"
#include "core/epochs.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {
namespace {

// Which of UpdateChoices codes an update from the head.
int64_t ChoiceFor(const RunContext& run) {
  switch (TaskFrom(*run.config, run.head.version)) {
    case ClientTask::kFullGradient:
      return kFullGradientChoice;
    case ClientTask::kGradientStep:
      return kGradientStepChoice;
    case ClientTask::kTrain:
      break;
  }
  return run.plan.choice;
}

// Norms to compare a small round with: those that the other clients' newest updates had under the same plan.
std::vector<double> EarlierNorms(const RunContext& run) {
  std::vector<double> norms;
  for (const auto& [client, notes] : run.notes) {
    const bool alike = notes.norm_steps == run.plan.local_steps && notes.norm_choice == run.plan.choice;
    if (notes.norm >= 0 && alike && !run.received.contains(client)) norms.push_back(notes.norm);
  }
  return norms;
}

struct Refused {
  RefusedUpdate update;
  bool grave = false;  // its client is set aside at once
};

// Returns the received updates that are refused.
absl::StatusOr<std::vector<Refused>> FindRefused(const RunContext& run) {
  UpdatePolicy policy = run.config->policy;
  if (!ComparesNorms(*run.config)) policy.norm_ratio = 0;
  std::vector<MeasuredUpdate> updates;
  for (const auto& [client, received] : run.received) {
    const auto notes = run.notes.find(client);
    updates.push_back({received.update.message,
                       {received.update.norm, received.update.largest},
                       notes == run.notes.end() ? 0 : notes->second.folded});
  }
  TERSE_ASSIGN_OR_RETURN(const std::vector<Judgement> judgements,
                         JudgeUpdates(*run.codec, updates, policy, EarlierNorms(run)));
  std::vector<Refused> refused;
  auto judgement = judgements.begin();
  for (const auto& [client, received] : run.received) {
    if (!judgement->reason.empty()) {
      refused.push_back({{client, received.update.update_id, judgement->reason}, judgement->grave});
    }
    ++judgement;
  }
  return refused;
}

// After the close that refused it. A client that does not hear it now is told when it checks in.
absl::Status DropRefused(RunContext& run, const Refused& refused) {
  const RefusedUpdate& update = refused.update;
  const ClientPolicy& policy = run.config->clients;
  const bool aside = refused.grave && policy.set_aside_after > 0;
  const std::string reason = absl::StrCat("its update was refused: ", update.reason);
  run.Tell(event::kUpdateRejected, update.client, update.reason);
  run.received.erase(update.client);
  run.notes[update.client].folded = 0;
  BeginHistoryAnew(run, update.client);
  for (auto& [id, session] : run.sessions) {
    if (session.client != update.client) continue;
    const std::string pause =
        aside ? absl::StrCat("; the client is set aside for ", policy.set_aside_seconds, " s") : "";
    session.link->SendLater(
        Verdict{Outcome::kReset, update.update_id, session.last_applied, absl::StrCat(reason, pause)});
  }
  TERSE_RETURN_IF_ERROR(RecordFailure(run, update.client, reason));
  if (!aside) return absl::OkStatus();
  const int64_t until = run.Now() + static_cast<int64_t>(policy.set_aside_seconds * 1e6);
  TERSE_ASSIGN_OR_RETURN(const ClientRecord record, run.store->GetClient(update.client));
  return record.set_aside_until_us >= until ? absl::OkStatus() : SetAside(run, update.client, until, reason);
}

}  // namespace

Transition Intake::OnStop(RunContext& run) {
  TERSE_RETURN_IF_ERROR(Abort(run, run.ending->reason));
  return PhaseName::kFinishing;
}

Transition Intake::OnAbort(RunContext& run, const std::string& reason) {
  TERSE_RETURN_IF_ERROR(Abort(run, reason));
  return PhaseName::kSelecting;
}

int64_t Intake::CompleteMicros(const RunContext& run) const {
  if (static_cast<int64_t>(run.received.size()) < run.config->rounds.quorum) return kNever;
  const bool places = HasPlaces(run);
  const auto wanted = [&](int64_t client) {
    return !run.received.contains(client) && (places || run.invited.contains(client));
  };
  return NobodyComesMicros(
      run, [&](const Session& session) { return wanted(session.client); }, wanted);
}

absl::Status Intake::Begin(RunContext& run, absl::FunctionRef<absl::Status(Session&)> assign) {
  TERSE_FAILPOINT("coordinator.round.opened");
  entered_us_ = looked_us_ = run.MonotonicNow();
  bool first = true;
  for (auto& [id, session] : run.sessions) {
    TERSE_RETURN_IF_ERROR(assign(session));
    session.link->Flush();  // also what the round before had to say
    if (std::exchange(first, false)) TERSE_FAILPOINT("coordinator.announce.first");
  }
  return absl::OkStatus();
}

void Assign(RunContext& run, Session& session) {
  session.assigned_round = run.round;
  ClientNotes& notes = run.notes[session.client];
  if (notes.first_given == 0) notes.first_given = run.round;
  notes.last_given = run.round;
  session.steps_done = 0;
  session.link->SendLater(Assignment{run.round, run.head.version, run.plan.local_steps, ChoiceFor(run),
                                     run.controller == nullptr ? absl::optional<int64_t>() : run.plan.first_iteration,
                                     run.histories != nullptr && run.histories->Holds(session.client)});
}

// A repeated update is answered again and counted once. A client that sends again has lost the connection that the
// receipt was to travel on, and is told at once.
absl::Status AnswerRepeated(RunContext& run, Session& session, const Update& update, ReceivedUpdate& known) {
  if (known.update.update_id != update.update_id) {
    return RefuseUpdate(run, session, event::kUpdateConflict, absl::StrCat("two updates for round ", update.round),
                        "another update of this client for this round was accepted before; wait for its verdict");
  }
  if (Mutated(Mutant::kNoDeduplication)) ++known.count;
  session.owes_round = 0;
  session.link->Send(Receipt{update.update_id});
  return absl::OkStatus();
}

absl::StatusOr<std::string> WhyNotTaken(RunContext& run, const Session& session, const Update& update) {
  if (session.set_aside_until_us != 0) {
    TERSE_ASSIGN_OR_RETURN(const ClientRecord record, run.store->GetClient(session.client));
    return absl::StrCat("the client is set aside (", record.set_aside_reason,
                        "), and its updates do not count until it is readmitted");
  }
  const bool owed = session.owes_round == update.round && run.MayOwe(session.client, update.round);
  if (owed || run.WasGiven(session.client, update.round)) return std::string();
  return absl::StrCat("the client was not given the work of round ", update.round);
}

absl::Status TurnAway(RunContext& run, Session& session, const Update& update, const std::string& reason) {
  const bool given = run.WasGiven(session.client, update.round);
  if (given) run.notes[session.client].first_given = 0;
  if (session.owes_round == update.round) session.owes_round = 0;
  run.book.AddUp(session.client, update.payload_bytes(), /*dense_bytes=*/0);
  // Work that nobody asked for raises no bound of the next update's norm.
  TERSE_RETURN_IF_ERROR(given ? CountNotApplied(run, session.client) : run.store->RecordNotApplied(session.client));
  TERSE_RETURN_IF_ERROR(run.NoteMisbehaviour(event::kUpdateTurnedAway, session.client, reason));
  session.link->Send(Verdict{Outcome::kNotApplied, update.update_id, session.last_applied, reason});
  return session.set_aside_until_us != 0 ? absl::OkStatus() : RecordFailure(run, session.client, reason);
}

absl::Status Accept(RunContext& run, Session& session, Update update, int64_t staleness) {
  if (update.unread) {
    // On its next connection the client says that the update is pending, and is then asked for it.
    Refuse(session, absl::StrCat("nobody asked for an update of round ", update.round, " here; check in again"),
           /*retry=*/true);
    return absl::OkStatus();
  }
  const Id128 id = update.update_id;
  run.book.AddUp(session.client, update.payload_bytes(), /*dense_bytes=*/0);
  run.received.emplace(session.client,
                       ReceivedUpdate{std::move(update), session.last_applied, session.samples, staleness});
  run.notes[session.client].first_given = 0;
  TERSE_FAILPOINT("coordinator.update.accepted");
  TERSE_RETURN_IF_ERROR(CompactHistoryIfDue(run, session.client));
  // On the connection that carried the update first, the receipt can wait for what follows.
  const bool sent_again = session.owes_round != 0;
  session.owes_round = 0;
  sent_again ? session.link->Send(Receipt{id}) : session.link->SendLater(Receipt{id});
  return absl::OkStatus();
}

absl::Status TakeIn(RunContext& run, Session& session, Update update) {
  const auto existing = run.received.find(session.client);
  if (existing != run.received.end()) return AnswerRepeated(run, session, update, existing->second);
  if (!Follows(run, session, update)) return AnswerLate(run, session, update);
  TERSE_ASSIGN_OR_RETURN(const absl::optional<int64_t> staleness, StalenessOf(run, update.round));
  const bool usable = staleness.has_value() && IsUsable(run, *staleness);
  // An update that a round chose has its verdict from that round.
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunStore::Fate> fate, run.store->FateOf(update.update_id));
  if (!usable || fate.has_value()) return AnswerLate(run, session, update);
  TERSE_ASSIGN_OR_RETURN(const std::string objection, WhyNotTaken(run, session, update));
  if (!objection.empty()) return TurnAway(run, session, update, objection);
  // Receivers of a downstream message allow for so many updates in it. Only a pause lets them become more.
  if (static_cast<int64_t>(run.received.size()) >= run.config->rounds.clients) {
    Refuse(session, "as many updates wait for the next round as one may have; try again later", /*retry=*/true);
    return absl::OkStatus();
  }
  return Accept(run, session, std::move(update), *staleness);
}

Transition CloseRound(RunContext& run) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<Refused> refused, FindRefused(run));
  std::vector<RefusedUpdate> records;
  std::vector<ChosenUpdate> chosen;
  for (const auto& [client, received] : run.received) {
    if (records.size() < refused.size() && refused[records.size()].update.client == client) {
      records.push_back(refused[records.size()].update);
      continue;
    }
    const Update& update = received.update;
    chosen.push_back({client, update.update_id, received.prev_applied, HashBytes(update.message),
                      update.payload_bytes(), update.train_us, update.loss, received.samples});
  }
  TERSE_FAILPOINT("coordinator.close.before");
  TERSE_RETURN_IF_ERROR(run.store->CloseRound(run.round, chosen, run.Now(), records));
  TERSE_FAILPOINT("coordinator.close.done");
  for (const Refused& one : refused) TERSE_RETURN_IF_ERROR(DropRefused(run, one));
  return PhaseName::kCommitting;
}

}  // namespace terse
