#include "coordinator/engine.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/catch_up.h"
#include "coordinator/client_histories.h"
#include "coordinator/limits.h"
#include "coordinator/round_plans.h"
#include "coordinator/sessions.h"
#include "coordinator/set_aside.h"
#include "core/fault.h"
#include "core/norm_code.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {
namespace {

// Whether the update is whole and follows the client's last applied one. The predecessor is part of the id, so an id
// that can be made again from the coordinator's record shows that both ends agree about it.
bool Follows(const EngineState& run, const Session& session, const Update& update) {
  if (update.packed) return false;  // it could not be read
  if (Mutated(Mutant::kNoPredecessorCheck)) return true;
  return update.update_id ==
         MakeUpdateId(run.lineage, update.round, session.client(), session.last_applied, update.bytes());
}

absl::optional<RelayState> MakeRelayState(const absl::optional<RelaySetup>& setup) {
  if (!setup.has_value()) return absl::nullopt;
  return RelayState{*setup, absl::nullopt, 0};
}

}  // namespace

Engine::Engine(Options options)
    : run_{std::make_shared<const RunConfig>(options.config),
           Id128{},
           Id128{},
           MakeRelayState(options.relay),
           options.clock,
           options.catch_up_bytes,
           options.most_log_bytes,
           options.evaluates,
           Fleet(options.config.rounds.buffered, options.clock->MonotonicMicros()),
           Round(),
           Model(options.codec),
           Journal(options.store, options.background, std::move(options.on_event)),
           ClientHistories{options.histories, {}, false},
           Course()} {
  if (options.histories != nullptr) options.histories->Clear();
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Resume(Options options) {
  const Codec* const downstream_codec = options.downstream_codec;
  std::unique_ptr<Engine> engine(new Engine(std::move(options)));
  TERSE_RETURN_IF_ERROR(engine->Begin(downstream_codec));
  return engine;
}

absl::Status Engine::Begin(const Codec* downstream_codec) {
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> record, run_.store()->Run());
  if (!record.has_value()) return absl::FailedPreconditionError("the store holds no run");
  run_.lineage = record->lineage;
  run_.family = run_.relay.has_value() ? run_.relay->setup.family : record->lineage;
  run_.course.created_us = run_.MonotonicNow() - (run_.Now() - record->created_us);
  TERSE_RETURN_IF_ERROR(run_.model.Recover(*run_.config, downstream_codec, run_.relay.has_value(), run_.store()));
  run_.fleet.SetHead(run_.model.head().version);
  return InBatch([&]() -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(absl::optional<RoundRecord> round, run_.store()->LastRound());
    if (run_.relay.has_value() && round.has_value()) {
      TERSE_RETURN_IF_ERROR(SettleLeftRound(*round));
      TERSE_ASSIGN_OR_RETURN(round, run_.store()->LastRound());
    }
    if (round.has_value()) run_.round.Resume(round->id, round->state == RoundState::kOpen, round->opened_us);
    TERSE_RETURN_IF_ERROR(ResumePlans(run_));
    TERSE_RETURN_IF_ERROR(TakeState(*record));
    const bool ends = run_.course.ending.has_value();
    if (ends && run_.round.open()) TERSE_RETURN_IF_ERROR(Abort(run_, run_.course.ending->reason));
    // The process before this one may have been killed while it was evaluated.
    if (run_.model.head().version % run_.config->evaluate_every == 0) TERSE_RETURN_IF_ERROR(EvaluateHead(run_));
    return Move(ends ? PhaseName::kFinishing : run_.round.open() ? PhaseName::kCollecting : PhaseName::kSelecting);
  });
}

// Whether the run is paused, was ended, or reached its end while no process looked.
absl::Status Engine::TakeState(const RunRecord& record) {
  run_.course.paused = record.state == RunState::kPaused;
  if (record.state == RunState::kStopping) {
    run_.course.ending = Ending{RunState::kStopped, record.reason};
    return absl::OkStatus();
  }
  if (record.state == RunState::kFinished || record.state == RunState::kStopped) {
    run_.course.ending = Ending{
        record.state, record.reason.empty() ? absl::StrCat("the run is ", RunStateName(record.state)) : record.reason};
    return absl::OkStatus();
  }
  const RunLimits& limits = run_.config->limits;
  run_.course.ending = EndAt(run_, run_.model.head().version);
  if (const std::string reason = TimeIsUp(limits, run_.course.created_us, run_.MonotonicNow()); !reason.empty()) {
    run_.course.ending = Ending{RunState::kFinished, reason};
  }
  evaluation_limits_ = EvaluationLimits(limits);
  if (!EndsByEvaluation(limits)) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const std::vector<RoundRecord> rounds, run_.store()->Rounds(1, run_.round.number()));
  for (const RoundRecord& round : rounds) {
    if (!round.evaluated()) continue;
    const std::string reason = evaluation_limits_.Take(round.id, {round.accuracy, round.test_loss.value_or(NAN)});
    if (!reason.empty()) run_.course.ending = Ending{RunState::kFinished, reason};
  }
  return absl::OkStatus();
}

absl::Status Engine::Handle(Event event) {
  std::vector<Event> one;
  one.push_back(std::move(event));
  return Handle(std::move(one));
}

absl::Status Engine::Handle(std::vector<Event> events) {
  return InBatch([&]() -> absl::Status {
    for (Event& event : events) {
      Transition next =
          std::visit([this](auto&& one) { return On(std::forward<decltype(one)>(one)); }, std::move(event));
      if (!next.ok()) return next.status();
      TERSE_RETURN_IF_ERROR(Move(*next));
    }
    return absl::OkStatus();
  });
}

absl::Status Engine::InBatch(absl::FunctionRef<absl::Status()> decide) {
  TERSE_RETURN_IF_ERROR(run_.journal.Begin());
  absl::Status status = decide();
  if (status.ok()) status = run_.journal.Commit([this] { PublishView(); });
  if (!status.ok()) run_.journal.Drop();
  return status;
}

absl::Status Engine::Move(absl::optional<PhaseName> next) {
  while (next.has_value()) {
    phase_ = MakePhase(*next, run_);
    Transition transition = phase_->Enter(run_);
    if (!transition.ok()) return transition.status();
    next = *transition;
  }
  return absl::OkStatus();
}

absl::Status Engine::Close() {
  return InBatch([&]() -> absl::Status {
    TERSE_RETURN_IF_ERROR(run_.journal.NoteRepeated(run_.MonotonicNow(), /*all=*/true));
    if (run_.round.number() == 0) return absl::OkStatus();
    BookWire(run_);
    return run_.store()->AddLedger(run_.book().Take(run_.round.number()));
  });
}

void Engine::DropSessions(const std::string& reason) {
  for (const auto& [id, session] : run_.fleet.sessions()) {
    run_.fleet.Refuse(*session);
    session->link->Send({{Refusal{reason, /*retry=*/true}}});
  }
}

void Engine::EndSessions(const std::string& reason) {
  for (const auto& [id, session] : run_.fleet.sessions()) session->link->Send({{Finished{reason}}});
}

int64_t Engine::NextDeadlineMicros() const {
  if (phase_->name() == PhaseName::kFinishing) return kNever;
  return std::min({phase_->DeadlineMicros(run_), run_.fleet.NextReadmissionMicros(), run_.journal.NextNoteMicros(),
                   TimeLimitMicros(run_.config->limits, run_.course.created_us)});
}

Transition Engine::On(Connected event) {
  run_.fleet.Connect(event.session, std::move(event.link));
  return absl::nullopt;
}

Transition Engine::On(Received event) {
  Session* const session = run_.fleet.Find(event.session);
  if (session == nullptr || session->refused()) return absl::nullopt;  // it may have disconnected meanwhile
  const bool checks_in = std::holds_alternative<CheckIn>(event.message);
  if (checks_in != (session->client() < 0)) {
    Refuse(run_, *session, checks_in ? "a session checks in once" : "a session begins with a check-in",
           /*retry=*/false);
    return absl::nullopt;
  }
  return OnMessage(*session, std::move(event.message));
}

Transition Engine::OnMessage(Session& session, FromClient message) {
  run_.fleet.Touch(session);
  if (auto* check_in = std::get_if<CheckIn>(&message)) {
    TERSE_RETURN_IF_ERROR(HandleCheckIn(run_, session, *check_in));
  } else if (auto* ready = std::get_if<Ready>(&message)) {
    TERSE_RETURN_IF_ERROR(HandleReady(run_, session, *ready));
    if (session.version().has_value()) return phase_->OnReady(run_, session);
  } else if (auto* update = std::get_if<Update>(&message)) {
    return OnSent(session, std::move(*update));
  } else if (auto* progress = std::get_if<Progress>(&message)) {
    if (progress->round == session.assigned_round()) session.steps_done = progress->steps_done;
  } else if (const auto* leaving = std::get_if<Leaving>(&message); leaving != nullptr && !leaving->reason.empty()) {
    run_.fleet.Refuse(session);  // it said its last word
    TERSE_RETURN_IF_ERROR(run_.NoteMisbehaviour(event::kClientFailed, session.client(), leaving->reason));
  }
  return absl::nullopt;  // after Leaving the connection ends by itself
}

Transition Engine::OnSent(Session& session, Update update) {
  TERSE_FAILPOINT("coordinator.update.received");
  if (!session.said_ready) {
    Refuse(run_, session, "an update follows Ready", /*retry=*/false);
    return absl::nullopt;
  }
  // The client will not repeat it, whatever becomes of the update.
  if (update.norm_code.has_value()) session.norm_code = update.norm_code;
  // The session drops the work that it was given since: a client takes no work while its own update has no verdict.
  run_.fleet.SetAssigned(session, 0);
  if (update.cohort.clients > 0 && !session.is_relay) {
    Refuse(run_, session, "only a relay's update stands for other clients", /*retry=*/false);
    TERSE_RETURN_IF_ERROR(
        run_.NoteMisbehaviour(event::kUpdateRejected, session.client(), "it claims to be a cohort's"));
    return phase_->OnLeft(run_);
  }
  // One that is sent again after its verdict is known by its id.
  if (update.update_id == session.last_applied || Follows(run_, session, update)) {
    return phase_->OnUpdate(run_, session, std::move(update));
  }
  const bool came_packed = update.packed || update.packed_bytes > 0;
  TERSE_RETURN_IF_ERROR(
      came_packed ? RefuseMisread(run_, session)
                  : RefuseUpdate(run_, session, event::kUpdateRejected, "update id does not fit its content",
                                 "the update does not follow the last applied one or is damaged; check in again"));
  return phase_->OnLeft(run_);
}

Transition Engine::On(Disconnected event) {
  TERSE_RETURN_IF_ERROR(CloseSession(run_, event.session));
  TERSE_RETURN_IF_ERROR(FlushLedger());
  return phase_->OnLeft(run_);
}

Transition Engine::On(Drained event) {
  Session* const session = run_.fleet.Find(event.session);
  if (session == nullptr || session->refused()) return absl::nullopt;
  run_.fleet.SetDraining(*session, false);
  TERSE_RETURN_IF_ERROR(BringUp(run_, *session));
  return session->version() == run_.model.head().version ? phase_->OnReady(run_, *session) : absl::nullopt;
}

Transition Engine::On(SpoolFailed event) { return event.status; }

Transition Engine::On(Misbehaved event) {
  Session* const session = run_.fleet.Find(event.session);
  if (session == nullptr || session->refused()) return absl::nullopt;
  run_.fleet.Refuse(*session);
  TERSE_RETURN_IF_ERROR(run_.NoteMisbehaviour(event::kMessageRefused, session->client(), event.reason));
  if (session->client() < 0) return absl::nullopt;
  TERSE_RETURN_IF_ERROR(RecordFailure(run_, session->client(), event.reason));
  return phase_->OnLeft(run_);
}

// Between rounds the book has no commit to wait for.
absl::Status Engine::FlushLedger() {
  if (run_.round.open() || run_.round.number() == 0) return absl::OkStatus();
  return run_.store()->AddLedger(run_.book().Take(run_.round.number()));
}

Transition Engine::On(Evaluated event) {
  run_.model.EndEvaluation(event.round);
  if (event.result.ok()) {
    TERSE_RETURN_IF_ERROR(run_.store()->SetEvaluation(event.round, *event.result));
    const std::string reason = evaluation_limits_.Take(event.round, *event.result);
    if (!reason.empty() && !run_.course.ending.has_value()) return End(RunState::kFinished, reason);
  } else {
    TERSE_RETURN_IF_ERROR(run_.Note(event::kEvaluationFailed, -1, std::string(event.result.status().message())));
  }
  return phase_->OnBackground(run_);
}

Transition Engine::On(CheckpointWritten event) {
  run_.model.OnWritten();
  if (!event.status.ok()) return Annotate(event.status, absl::StrCat("writing checkpoint ", event.version));
  run_.model.SetCheckpointVersion(event.version);
  for (const auto& [id, session] : run_.fleet.sessions()) {
    if (session->awaits_checkpoint() && !session->refused()) TERSE_RETURN_IF_ERROR(BringUp(run_, *session));
  }
  return phase_->OnBackground(run_);
}

Transition Engine::On(Tick event) {
  const std::string reason = TimeIsUp(run_.config->limits, run_.course.created_us, run_.MonotonicNow());
  if (!reason.empty()) return End(RunState::kFinished, reason);
  TERSE_RETURN_IF_ERROR(ReadmitDue(run_));
  TERSE_RETURN_IF_ERROR(run_.journal.NoteRepeated(run_.MonotonicNow(), /*all=*/false));
  return phase_->OnTick(run_);
}

Transition Engine::On(StopRequested event) {
  TERSE_RETURN_IF_ERROR(run_.Note(event::kStopRequested, -1, "by the operator"));
  if (run_.course.ending.has_value()) return absl::nullopt;
  // The operator was told so: a process that dies before the last evaluation must not go on training.
  const std::string reason = "stopped by the operator";
  TERSE_RETURN_IF_ERROR(run_.store()->SetRunState(RunState::kStopping, reason));
  return End(RunState::kStopped, reason);
}

Transition Engine::End(RunState state, const std::string& reason) {
  if (run_.course.ending.has_value()) return absl::nullopt;
  run_.course.ending = Ending{state, reason};
  return phase_->OnStop(run_);
}

Transition Engine::On(PauseRequested event) {
  if (run_.course.paused || run_.course.ending.has_value()) return absl::nullopt;
  TERSE_RETURN_IF_ERROR(Pause(run_, event.reason));
  return phase_->OnTick(run_);  // a buffered round without a quorum may be waiting beyond its deadline
}

Transition Engine::On(ResumeRequested event) {
  if (!run_.course.paused || run_.course.ending.has_value()) return absl::nullopt;
  run_.course.paused = false;
  run_.course.unusable_rounds = 0;
  TERSE_RETURN_IF_ERROR(run_.store()->SetRunState(RunState::kActive, ""));
  TERSE_RETURN_IF_ERROR(run_.Note(event::kRunResumed, -1, "by the operator"));
  return phase_->OnTick(run_);
}

Transition Engine::On(AbortRequested event) { return phase_->OnAbort(run_, event.reason); }

Transition Engine::On(SetAsideRequested event) {
  TERSE_RETURN_IF_ERROR(SetAside(run_, event.client, event.until_us, event.reason));
  return phase_->OnTick(run_);
}

bool Engine::IsConsistent() const {
  for (int64_t client = 0; client < run_.fleet.size(); ++client) {
    if (run_.fleet.at(client).standing.delivered != run_.round.Has(client)) return false;
  }
  return run_.fleet.IsConsistent();
}

SessionView Engine::ViewOf(const Session& session) const {
  SessionView view;
  view.client = session.client();
  view.version = session.version().value_or(-1);
  view.steps_done = session.steps_done;
  view.device = session.device;
  if (session.norm_code.has_value()) view.residual_norm = NormFrom(*session.norm_code);
  view.state = session.assigned_round() != 0       ? "training"
               : session.set_aside_until_us() != 0 ? "set aside"
               : !session.version().has_value()    ? "syncing"
                                                   : "waiting";
  return view;
}

void Engine::PublishView() {
  const std::vector<int64_t> changed = run_.fleet.TakeChanged();
  absl::MutexLock lock(&view_mutex_);
  view_.phase = std::string(PhaseTitle(phase_->name()));
  if (run_.course.paused && phase_->name() == PhaseName::kSelecting) view_.phase = "paused";
  view_.round = run_.round.number();
  view_.head = run_.model.head();
  view_.iterations = run_.course.iterations;
  const std::set<int64_t>& evaluating = run_.model.evaluating();
  view_.evaluating = evaluating.empty() ? 0 : *evaluating.begin();
  view_.ended =
      phase_->name() == PhaseName::kFinishing && run_.model.evaluating().empty() && !run_.model.checkpoint_running();
  for (int64_t client : changed) {
    const Session* const session = run_.fleet.Of(client);
    if (session == nullptr) {
      session_views_.erase(client);
    } else {
      session_views_[client] = ViewOf(*session);
    }
  }
}

EngineView Engine::View() const {
  absl::MutexLock lock(&view_mutex_);
  EngineView view = view_;
  view.sessions.reserve(session_views_.size());
  for (const auto& [client, session] : session_views_) view.sessions.push_back(session);
  return view;
}

}  // namespace terse
