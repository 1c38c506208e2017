#include "coordinator/phases/intake.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "compression/bundle.h"
#include "coordinator/client_histories.h"
#include "coordinator/round_inputs.h"
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
int64_t ChoiceFor(const EngineState& run) {
  switch (TaskFrom(*run.config, run.model.head().version)) {
    case ClientTask::kFullGradient:
      return kFullGradientChoice;
    case ClientTask::kGradientStep:
      return kGradientStepChoice;
    case ClientTask::kTrain:
      break;
  }
  return run.round.plan().choice;
}

// Norms to compare a small round with: those that the other clients' newest updates had under the same plan.
std::vector<double> EarlierNorms(const EngineState& run) {
  std::vector<double> norms;
  const RoundPlan& plan = run.round.plan();
  for (int64_t client = 0; client < run.fleet.size(); ++client) {
    const absl::optional<ClientNotes>& notes = run.fleet.at(client).notes;
    if (!notes.has_value() || notes->norm < 0 || run.round.Has(client)) continue;
    if (notes->norm_steps == plan.local_steps && notes->norm_choice == plan.choice) norms.push_back(notes->norm);
  }
  return norms;
}

// The policy looks at each update by itself, also at those in a bundle.
struct Candidate {
  int64_t client = 0;
  absl::optional<size_t> place;  // in the bundle
  MeasuredUpdate update;
};

absl::StatusOr<std::vector<Candidate>> CandidatesOf(const EngineState& run) {
  std::vector<Candidate> candidates;
  for (const auto& [client, received] : run.round.updates()) {
    const absl::optional<ClientNotes>& notes = run.fleet.at(client).notes;
    const int64_t folded = notes.has_value() ? notes->folded : 0;
    if (!IsBundle(received.update.bytes())) {
      const UpdateSize size = {received.update.norm, received.update.largest};
      candidates.push_back({client, absl::nullopt, {received.update.bytes(), size, folded}});
      continue;
    }
    const std::vector<BundledUpdate> parts = PartsOf(received);
    for (size_t i = 0; i < parts.size(); ++i) {
      const absl::StatusOr<UpdateSize> size = run.model.codec().Measure(parts[i].message);
      if (!size.ok()) return absl::UnavailableError(absl::StrCat("an update on the disk: ", size.status().message()));
      candidates.push_back({client, i, {parts[i].message, *size, folded}});
    }
  }
  return candidates;
}

struct Refused {
  RefusedUpdate update;
  bool grave = false;  // its client is set aside at once
};

// A relay's update that has lost all of its parts is refused; one that has lost some counts without them. Their clients
// hear no more than that of the relay.
absl::Status LeaveOut(EngineState& run, const Candidate& candidate, const std::string& reason) {
  run.round.Find(candidate.client)->left_out.push_back(*candidate.place);
  return run.NoteMisbehaviour(event::kUpdateRejected, candidate.client,
                              absl::StrCat("update ", *candidate.place, " of those that it forwards: ", reason));
}

// Returns the received updates that are refused, in the order of their clients.
absl::StatusOr<std::vector<Refused>> FindRefused(EngineState& run) {
  UpdatePolicy policy = run.config->policy;
  if (!ComparesNorms(*run.config)) policy.norm_ratio = 0;
  TERSE_ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, CandidatesOf(run));
  std::vector<MeasuredUpdate> updates;
  updates.reserve(candidates.size());
  for (const Candidate& candidate : candidates) updates.push_back(candidate.update);
  TERSE_ASSIGN_OR_RETURN(const std::vector<Judgement> judgements,
                         JudgeUpdates(run.model.codec(), updates, policy, EarlierNorms(run)));
  std::vector<Refused> refused;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    const Judgement& judgement = judgements[i];
    if (judgement.reason.empty()) continue;
    const ReceivedUpdate& received = *run.round.Find(candidate.client);
    if (candidate.place.has_value()) {
      TERSE_RETURN_IF_ERROR(LeaveOut(run, candidate, judgement.reason));
      if (received.left_out.size() < PartsOf(received).size()) continue;
    }
    refused.push_back({{candidate.client, received.update.update_id, judgement.reason},
                       judgement.grave && !candidate.place.has_value()});
  }
  return refused;
}

// After the close that refused it. A client that does not hear it now is told when it checks in.
absl::Status DropRefused(EngineState& run, const Refused& refused) {
  const RefusedUpdate& update = refused.update;
  const ClientPolicy& policy = run.config->clients;
  const bool aside = refused.grave && policy.set_aside_after > 0;
  const std::string reason = absl::StrCat("its update was refused: ", update.reason);
  run.Tell(event::kUpdateRejected, update.client, update.reason);
  run.RemoveUpdate(update.client);
  run.fleet.NotesOf(update.client).folded = 0;
  BeginHistoryAnew(run, update.client);
  if (const Session* const session = run.fleet.Of(update.client)) {
    const std::string pause =
        aside ? absl::StrCat("; the client is set aside for ", policy.set_aside_seconds, " s") : "";
    run.journal.Say(session->link,
                    Verdict{Outcome::kReset, update.update_id, session->last_applied, absl::StrCat(reason, pause)});
  }
  TERSE_RETURN_IF_ERROR(RecordFailure(run, update.client, reason));
  if (!aside) return absl::OkStatus();
  const int64_t until = run.Now() + static_cast<int64_t>(policy.set_aside_seconds * 1e6);
  TERSE_ASSIGN_OR_RETURN(const ClientRecord record, run.store()->GetClient(update.client));
  return record.set_aside_until_us >= until ? absl::OkStatus() : SetAside(run, update.client, until, reason);
}

// Answers an update of a client whose update is in the round already. A repeated one is answered again and counted
// once: its client has lost the connection that the receipt was to travel on, and is told at once. Another one is
// refused.
absl::Status AnswerRepeated(EngineState& run, Session& session, const Update& update, ReceivedUpdate& known) {
  if (known.update.update_id != update.update_id) {
    return RefuseUpdate(run, session, event::kUpdateConflict, absl::StrCat("two updates for round ", update.round),
                        "another update of this client for this round was accepted before; wait for its verdict");
  }
  if (Mutated(Mutant::kNoDeduplication)) ++known.count;
  run.fleet.SetOwed(session, 0);
  run.journal.Say(session.link, Receipt{update.update_id});
  return absl::OkStatus();
}

// Returns why a valid update that follows the client's last one does not count: its client is set aside, or was not
// given the work. Empty for one that does count.
absl::StatusOr<std::string> WhyNotTaken(EngineState& run, const Session& session, const Update& update) {
  if (session.set_aside_until_us() != 0) {
    TERSE_ASSIGN_OR_RETURN(const ClientRecord record, run.store()->GetClient(session.client()));
    return absl::StrCat("the client is set aside (", record.set_aside_reason,
                        "), and its updates do not count until it is readmitted");
  }
  const bool owed = session.owes_round() == update.round && run.MayOwe(session.client(), update.round);
  if (owed || run.WasGiven(session.client(), update.round)) return std::string();
  return absl::StrCat("the client was not given the work of round ", update.round);
}

// Answers such an update with NOT_APPLIED and the reason: nothing is lost, and the client is free.
absl::Status TurnAway(EngineState& run, Session& session, const Update& update, const std::string& reason) {
  const bool given = run.WasGiven(session.client(), update.round);
  if (given) run.fleet.NotesOf(session.client()).first_given = 0;
  if (session.owes_round() == update.round) run.fleet.SetOwed(session, 0);
  run.book().AddUp(session.client(), update.payload_bytes(), /*dense_bytes=*/0);
  // Work that nobody asked for raises no bound of the next update's norm.
  TERSE_RETURN_IF_ERROR(given ? CountNotApplied(run, session.client())
                              : run.store()->RecordNotApplied(session.client()));
  TERSE_RETURN_IF_ERROR(run.NoteMisbehaviour(event::kUpdateTurnedAway, session.client(), reason));
  run.journal.Say(session.link, Verdict{Outcome::kNotApplied, update.update_id, session.last_applied, reason});
  return session.set_aside_until_us() != 0 ? absl::OkStatus() : RecordFailure(run, session.client(), reason);
}

// Adds an update to the round's. Refuses the session when the update was not decoded.
absl::Status Accept(EngineState& run, Session& session, Update update, int64_t staleness) {
  if (update.unread) {
    // On its next connection the client says that the update is pending, and is then asked for it.
    Refuse(run, session, absl::StrCat("nobody asked for an update of round ", update.round, " here; check in again"),
           /*retry=*/true);
    return absl::OkStatus();
  }
  const Id128 id = update.update_id;
  run.book().AddUp(session.client(), update.payload_bytes(), /*dense_bytes=*/0);
  if (update.below.has_value()) TERSE_RETURN_IF_ERROR(run.store()->SetBelow({session.client(), *update.below}));
  const int64_t samples = update.cohort.samples > 0 ? update.cohort.samples : session.samples;
  run.AddUpdate(session.client(), ReceivedUpdate{std::move(update), session.last_applied, samples, staleness});
  run.fleet.NotesOf(session.client()).first_given = 0;
  TERSE_FAILPOINT("coordinator.update.accepted");
  TERSE_RETURN_IF_ERROR(CompactHistoryIfDue(run, session.client()));
  // On the connection that carried the update first, the receipt can wait for the verdict, if a round is open.
  const bool may_wait = session.owes_round() == 0 && run.round.open();
  run.fleet.SetOwed(session, 0);
  run.journal.Say(session.link, Receipt{id}, may_wait);
  return absl::OkStatus();
}

bool IsOfOpenRound(const EngineState& run, const Update& update) {
  return run.round.open() && update.round == run.round.number();
}

// Returns the staleness of an update that the next close may choose; nullopt for one that has its verdict already.
absl::StatusOr<absl::optional<int64_t>> UsableStaleness(const EngineState& run, int64_t client, const Update& update) {
  if (IsOfOpenRound(run, update)) return absl::make_optional<int64_t>(0);
  TERSE_ASSIGN_OR_RETURN(const absl::optional<int64_t> staleness, StalenessOf(run, update.round));
  if (!staleness.has_value() || !IsUsable(run, *staleness)) return absl::optional<int64_t>();
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunStore::Fate> fate,
                         run.store()->FateOf(update.update_id, client, update.round));
  return fate.has_value() ? absl::optional<int64_t>() : staleness;
}

}  // namespace

Transition Intake::OnStop(EngineState& run) {
  TERSE_RETURN_IF_ERROR(Abort(run, run.course.ending->reason));
  return PhaseName::kFinishing;
}

Transition Intake::OnAbort(EngineState& run, const std::string& reason) {
  TERSE_RETURN_IF_ERROR(Abort(run, reason));
  return PhaseName::kSelecting;
}

Transition Intake::OnUpdate(EngineState& run, Session& session, Update update) {
  TERSE_RETURN_IF_ERROR(TakeIn(run, session, std::move(update)));
  return Proceed(run);
}

int64_t Intake::CompleteMicros(const EngineState& run) const {
  if (run.round.size() < run.config->rounds.quorum) return kNever;
  const bool places = HasPlaces(run);
  const auto wanted = [places](Standing s) { return !s.delivered && (places || s.invited); };
  return run.fleet.NobodyComesMicros(wanted, wanted);
}

absl::Status Intake::Begin(EngineState& run) {
  TERSE_FAILPOINT("coordinator.round.opened");
  entered_us_ = looked_us_ = run.MonotonicNow();
  return absl::OkStatus();
}

void Assign(EngineState& run, Session& session) {
  run.fleet.SetAssigned(session, run.round.number());
  ClientNotes& notes = run.fleet.NotesOf(session.client());
  if (notes.first_given == 0) notes.first_given = run.round.number();
  notes.last_given = run.round.number();
  session.steps_done = 0;
  const RoundPlan& plan = run.round.plan();
  const bool is_planned = run.course.controller != nullptr || run.relay.has_value();
  const auto first = is_planned ? absl::make_optional(plan.first_iteration) : absl::nullopt;
  run.journal.Say(session.link, Assignment{run.round.number(), run.model.head().version, plan.local_steps,
                                           ChoiceFor(run), first, run.histories.Holds(session.client())});
}

absl::Status TakeIn(EngineState& run, Session& session, Update update) {
  // A synchronous round takes its own updates alone.
  const bool may_count = run.config->rounds.buffered || IsOfOpenRound(run, update);
  if (!may_count || update.update_id == session.last_applied) return AnswerLate(run, session, update);
  ReceivedUpdate* const existing = run.round.Find(session.client());
  if (existing != nullptr) return AnswerRepeated(run, session, update, *existing);
  TERSE_ASSIGN_OR_RETURN(const absl::optional<int64_t> staleness, UsableStaleness(run, session.client(), update));
  if (!staleness.has_value()) return AnswerLate(run, session, update);
  TERSE_ASSIGN_OR_RETURN(const std::string objection, WhyNotTaken(run, session, update));
  if (!objection.empty()) return TurnAway(run, session, update, objection);
  if (!run.config->rounds.buffered && run.course.controller != nullptr && !HasChoice(update, run.round.plan().choice)) {
    return RefuseUpdate(run, session, event::kUpdateRejected, "another coding than the round's",
                        "the update is not coded as its assignment said; check in again");
  }
  if (IsBundle(update.bytes()) && run.config->downstream == DownstreamMode::kForward) {
    return RefuseUpdate(run, session, event::kUpdateRejected, "a bundle, and the run's downstream is forward",
                        "a run whose codec.downstream is 'forward' hands on no more updates than rounds.clients: start "
                        "the relay with --mode recompress");
  }
  // Receivers of a downstream message allow for so many updates in it. Only a pause lets them become more.
  if (run.round.size() >= run.config->rounds.clients) {
    Refuse(run, session, "as many updates wait for the next round as one may have; try again later", /*retry=*/true);
    return absl::OkStatus();
  }
  return Accept(run, session, std::move(update), *staleness);
}

namespace {

// The update may have been on the disk since it was accepted. UNAVAILABLE when it is not what it was then.
absl::Status ExpectWhole(const EngineState& run, int64_t client, const ReceivedUpdate& received, Id128 hash) {
  const Update& update = received.update;
  const Id128 id = MakeUpdateId(run.lineage, update.round, client, received.prev_applied, hash);
  if (id == update.update_id || Mutated(Mutant::kNoPredecessorCheck)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the update of client ", client, " in round ", update.round,
                                             " is no longer what was received; check the disk"));
}

}  // namespace

Transition CloseRound(EngineState& run) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<Refused> refused, FindRefused(run));
  std::vector<RefusedUpdate> records;
  std::vector<ChosenUpdate> chosen;
  for (const auto& [client, received] : run.round.updates()) {
    if (records.size() < refused.size() && refused[records.size()].update.client == client) {
      records.push_back(refused[records.size()].update);
      continue;
    }
    const Update& update = received.update;
    const Id128 hash = HashBytes(update.bytes());
    TERSE_RETURN_IF_ERROR(ExpectWhole(run, client, received, hash));
    chosen.push_back({client, update.update_id, received.prev_applied, hash, update.payload_bytes(), update.train_us,
                      update.loss, received.samples, update.metrics});
  }
  TERSE_FAILPOINT("coordinator.close.before");
  TERSE_RETURN_IF_ERROR(run.store()->CloseRound(run.round.number(), chosen, run.Now(), records));
  TERSE_FAILPOINT("coordinator.close.done");
  for (const Refused& one : refused) TERSE_RETURN_IF_ERROR(DropRefused(run, one));
  run.round.Close();
  return PhaseName::kCommitting;
}

}  // namespace terse
