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

// Of the received updates, those that [policy] refuses.
absl::StatusOr<std::vector<RefusedUpdate>> FindRefused(const RunContext& run) {
  std::vector<RefusedUpdate> refused;
  if (!run.config->policy.refuses()) return refused;
  std::vector<absl::string_view> messages;
  for (const auto& [client, received] : run.received) messages.push_back(received.update.message);
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> reasons,
                         JudgeUpdates(*run.codec, messages, run.config->policy));
  auto reason = reasons.begin();
  for (const auto& [client, received] : run.received) {
    if (!reason->empty()) refused.push_back({client, received.update.update_id, *reason});
    ++reason;
  }
  return refused;
}

// After the close that refused it. A client that does not hear it now is told when it checks in.
absl::Status DropRefused(RunContext& run, const RefusedUpdate& update) {
  run.Tell("update_rejected", update.client, update.reason);
  run.received.erase(update.client);
  BeginHistoryAnew(run, update.client);
  for (auto& [id, session] : run.sessions) {
    if (session.client != update.client) continue;
    session.link->SendLater(Verdict{Outcome::kReset, update.update_id, session.last_applied,
                                    absl::StrCat("its update was refused: ", update.reason)});
  }
  return RecordFailure(run, update.client, absl::StrCat("its update was refused: ", update.reason));
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
  session.steps_done = 0;
  session.link->SendLater(Assignment{run.round, run.head.version, run.plan.local_steps, ChoiceFor(run),
                                     run.controller == nullptr ? absl::optional<int64_t>() : run.plan.first_iteration,
                                     run.histories != nullptr && run.histories->Holds(session.client)});
}

// A repeated update is answered again and counted once. Whoever sends again has lost the connection that the receipt
// was to travel on, and is told at once.
absl::Status AnswerRepeated(RunContext& run, Session& session, const Update& update, ReceivedUpdate& known) {
  if (known.update.update_id != update.update_id) {
    return RefuseUpdate(run, session, "update_conflict", absl::StrCat("two updates for round ", update.round),
                        "another update of this client for this round was accepted before; wait for its verdict");
  }
  if (Mutated(Mutant::kNoDeduplication)) ++known.count;
  session.owes_round = 0;
  session.link->Send(Receipt{update.update_id});
  return absl::OkStatus();
}

absl::Status Accept(RunContext& run, Session& session, Update update, int64_t staleness) {
  const Id128 id = update.update_id;
  run.book.AddUp(session.client, update.payload_bytes(), /*dense_bytes=*/0);
  run.received.emplace(session.client, ReceivedUpdate{std::move(update), session.samples, staleness});
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
  // Receivers of a downstream message allow for so many updates in it. Only a pause lets them become more.
  if (static_cast<int64_t>(run.received.size()) >= run.config->rounds.clients) {
    Refuse(session, "as many updates wait for the next round as one may have; try again later", /*retry=*/true);
    return absl::OkStatus();
  }
  return Accept(run, session, std::move(update), *staleness);
}

Transition CloseRound(RunContext& run) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<RefusedUpdate> refused, FindRefused(run));
  std::vector<ChosenUpdate> chosen;
  auto next_refused = refused.begin();
  for (const auto& [client, received] : run.received) {
    if (next_refused != refused.end() && next_refused->client == client) {
      ++next_refused;
      continue;
    }
    const Update& update = received.update;
    TERSE_ASSIGN_OR_RETURN(const ClientRecord record, run.store->GetClient(client));
    chosen.push_back({client, update.update_id, record.last_applied, HashBytes(update.message), update.payload_bytes(),
                      update.train_us, update.loss, received.samples});
  }
  TERSE_FAILPOINT("coordinator.close.before");
  TERSE_RETURN_IF_ERROR(run.store->CloseRound(run.round, chosen, run.Now(), refused));
  TERSE_FAILPOINT("coordinator.close.done");
  for (const RefusedUpdate& update : refused) TERSE_RETURN_IF_ERROR(DropRefused(run, update));
  return PhaseName::kCommitting;
}

}  // namespace terse
