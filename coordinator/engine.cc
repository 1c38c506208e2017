#include "coordinator/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/limits.h"
#include "coordinator/round_plans.h"
#include "coordinator/sessions.h"
#include "coordinator/set_aside.h"
#include "core/fault.h"
#include "core/norm_code.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {

Engine::Engine(Options options) {
  run_.config = std::make_shared<const RunConfig>(std::move(options.config));
  run_.codec = options.codec;
  run_.store = options.store;
  run_.background = options.background;
  run_.clock = options.clock;
  run_.on_event = std::move(options.on_event);
  run_.histories = options.histories;
  run_.catch_up_bytes = options.catch_up_bytes;
  run_.most_log_bytes = options.most_log_bytes;
  if (run_.histories != nullptr) run_.histories->Clear();
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Resume(Options options) {
  const Codec* const downstream_codec = options.downstream_codec;
  std::unique_ptr<Engine> engine(new Engine(std::move(options)));
  TERSE_RETURN_IF_ERROR(engine->Recover(downstream_codec));
  TERSE_RETURN_IF_ERROR(engine->Begin());
  return engine;
}

absl::Status Engine::Recover(const Codec* downstream_codec) {
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> record, run_.store->Run());
  if (!record.has_value()) return absl::FailedPreconditionError("the store holds no run");
  TERSE_ASSIGN_OR_RETURN(run_.server, ServerStep::Make(*run_.config, {*run_.codec, downstream_codec}));
  run_.lineage = record->lineage;
  run_.created_us = run_.MonotonicNow() - (run_.Now() - record->created_us);
  TERSE_ASSIGN_OR_RETURN(run_.start_hash, run_.store->StartHash());
  TERSE_ASSIGN_OR_RETURN(run_.head, run_.store->GetHead());
  TERSE_ASSIGN_OR_RETURN(Checkpoint checkpoint, run_.store->ReadNewestCheckpoint());
  run_.checkpoint_version = checkpoint.version;
  run_.weights = std::move(checkpoint.weights);
  if (static_cast<int64_t>(run_.weights.size()) != run_.layout().size()) {
    return absl::DataLossError(absl::StrCat("checkpoint ", checkpoint.version, " holds ", run_.weights.size(),
                                            " parameters, the model has ", run_.layout().size()));
  }
  if (run_.server->state_size() > 0 && checkpoint.version > 0 && checkpoint.server_state.empty()) {
    return absl::DataLossError(absl::StrCat("checkpoint ", checkpoint.version,
                                            " has no state of the server: restore the state directory from a backup"));
  }
  if (Mutated(Mutant::kForgetServerState)) checkpoint.server_state.clear();
  TERSE_RETURN_IF_ERROR(run_.server->Restore(run_.weights, checkpoint.server_state));
  // One message at a time: an epoch may lie behind the checkpoint, with a model in each.
  for (int64_t version = checkpoint.version; version < run_.head.version; ++version) {
    TERSE_ASSIGN_OR_RETURN(const std::vector<LogMessage> log, run_.store->ReadLog(version, version + 1));
    TERSE_RETURN_IF_ERROR(Annotate(Replay(log.front()), absl::StrCat("replaying the log, version ", version + 1)));
  }
  if (HashWeights(run_.weights) != run_.head.model_hash) {
    return absl::DataLossError(absl::StrCat("checkpoint ", checkpoint.version,
                                            " and the log after it do not give version ", run_.head.version,
                                            ": restore the state directory from a backup"));
  }
  TERSE_FAILPOINT("coordinator.restart.replayed");
  return absl::OkStatus();
}

absl::Status Engine::Replay(const LogMessage& message) {
  if (run_.server->has_state()) {
    const absl::StatusOr<std::string> aggregate = run_.store->ReadAggregate(message.version);
    if (!aggregate.ok() && !absl::IsNotFound(aggregate.status())) return aggregate.status();
    absl::StatusOr<std::vector<float>> repeated =
        aggregate.ok() ? run_.server->Repeat(message.version - 1, run_.weights, *aggregate, message.downstream)
                       : aggregate.status();
    if (!repeated.ok()) {
      return absl::DataLossError(
          absl::StrCat(repeated.status().message(), ": restore the state directory from a backup"));
    }
    run_.weights = *std::move(repeated);
    return absl::OkStatus();
  }
  return run_.server->Apply(message.downstream, absl::MakeSpan(run_.weights));
}

absl::Status Engine::Begin() {
  run_.resumed_us = run_.MonotonicNow();
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundRecord> round, run_.store->LastRound());
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> record, run_.store->Run());
  if (round.has_value()) {
    run_.round = run_.resumed_round = round->id;
    run_.round_open = round->state == RoundState::kOpen;
    run_.round_opened_us = round->opened_us;
  }
  TERSE_RETURN_IF_ERROR(ResumePlans(run_));
  TERSE_RETURN_IF_ERROR(TakeState(*record));
  if (run_.ending.has_value() && run_.round_open) TERSE_RETURN_IF_ERROR(Abort(run_, run_.ending->reason));
  const PhaseName first = run_.ending.has_value() ? PhaseName::kFinishing
                          : run_.round_open       ? PhaseName::kCollecting
                                                  : PhaseName::kSelecting;
  TERSE_RETURN_IF_ERROR(Move(first));
  PublishView();
  return absl::OkStatus();
}

// Whether the run is paused, was ended, or reached its end while no process looked.
absl::Status Engine::TakeState(const RunRecord& record) {
  run_.paused = record.state == RunState::kPaused;
  if (record.state == RunState::kStopping) {
    run_.ending = Ending{RunState::kStopped, record.reason};
    return absl::OkStatus();
  }
  if (record.state == RunState::kFinished || record.state == RunState::kStopped) {
    run_.ending = Ending{
        record.state, record.reason.empty() ? absl::StrCat("the run is ", RunStateName(record.state)) : record.reason};
    return absl::OkStatus();
  }
  const RunLimits& limits = run_.config->limits;
  run_.ending = EndAt(run_, run_.head.version);
  if (const std::string reason = TimeIsUp(limits, run_.created_us, run_.MonotonicNow()); !reason.empty()) {
    run_.ending = Ending{RunState::kFinished, reason};
  }
  if (limits.accuracy <= 0 && limits.loss <= 0) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const std::vector<RoundRecord> rounds, run_.store->Rounds(1, run_.round));
  for (const RoundRecord& round : rounds) {
    if (!round.evaluated()) continue;
    const std::string reason = TargetReached(limits, round.id, {round.accuracy, round.test_loss.value_or(NAN)});
    if (!reason.empty()) run_.ending = Ending{RunState::kFinished, reason};
  }
  return absl::OkStatus();
}

absl::Status Engine::Handle(Event event) {
  Transition next = std::visit([this](auto&& one) { return On(std::forward<decltype(one)>(one)); }, std::move(event));
  if (!next.ok()) return next.status();
  TERSE_RETURN_IF_ERROR(Move(*next));
  PublishView();
  return absl::OkStatus();
}

absl::Status Engine::Move(absl::optional<PhaseName> next) {
  while (next.has_value()) {
    phase_ = MakePhase(*next, run_.config->rounds);
    Transition transition = phase_->Enter(run_);
    if (!transition.ok()) return transition.status();
    next = *transition;
  }
  return absl::OkStatus();
}

absl::Status Engine::Close() {
  TERSE_RETURN_IF_ERROR(run_.NoteRepeated(/*all=*/true));
  if (run_.round == 0) return absl::OkStatus();
  BookWire(run_);
  return run_.store->AddLedger(run_.book.Take(run_.round));
}

void Engine::DropSessions(const std::string& reason) {
  for (auto& [id, session] : run_.sessions) Refuse(session, reason, /*retry=*/true);
}

void Engine::EndSessions(const std::string& reason) {
  for (auto& [id, session] : run_.sessions) session.link->Send(Finished{reason});
}

int64_t Engine::NextDeadlineMicros() const {
  if (phase_->name() == PhaseName::kFinishing) return kNever;
  return std::min({phase_->DeadlineMicros(run_), NextReadmissionMicros(run_), run_.repeated_events.NextMicros(),
                   TimeLimitMicros(run_.config->limits, run_.created_us)});
}

Transition Engine::On(Connected event) {
  run_.sessions[event.session].link = std::move(event.link);
  return absl::nullopt;
}

Transition Engine::On(Received event) {
  const auto it = run_.sessions.find(event.session);
  if (it == run_.sessions.end()) return absl::nullopt;  // it disconnected meanwhile
  Session& session = it->second;
  if (session.refused) return absl::nullopt;
  const bool checks_in = std::holds_alternative<CheckIn>(event.message);
  if (checks_in != (session.client < 0)) {
    Refuse(session, checks_in ? "a session checks in once" : "a session begins with a check-in", /*retry=*/false);
    return absl::nullopt;
  }
  return OnMessage(event.session, session, std::move(event.message));
}

Transition Engine::OnMessage(SessionId id, Session& session, FromClient message) {
  if (auto* check_in = std::get_if<CheckIn>(&message)) {
    TERSE_RETURN_IF_ERROR(HandleCheckIn(run_, id, *check_in));
  } else if (auto* ready = std::get_if<Ready>(&message)) {
    TERSE_RETURN_IF_ERROR(HandleReady(run_, id, *ready));
    if (session.version.has_value()) return phase_->OnReady(run_, session);
  } else if (auto* update = std::get_if<Update>(&message)) {
    TERSE_FAILPOINT("coordinator.update.received");
    if (!session.said_ready) {
      Refuse(session, "an update follows Ready", /*retry=*/false);
      return absl::nullopt;
    }
    // The client will not repeat it, whatever becomes of the update.
    if (update->norm_code.has_value()) session.norm_code = update->norm_code;
    // The session drops the work that it was given since: a client takes no work while its own update has no verdict.
    session.assigned_round = 0;
    if (IsMisread(run_, session, *update)) {
      // An update that is sent again after its verdict needs no reading.
      const bool applied = update->update_id == session.last_applied;
      TERSE_RETURN_IF_ERROR(applied ? AnswerLate(run_, session, *update) : RefuseMisread(run_, session));
      return absl::nullopt;
    }
    return phase_->OnUpdate(run_, session, std::move(*update));
  } else if (auto* progress = std::get_if<Progress>(&message)) {
    if (progress->round == session.assigned_round) session.steps_done = progress->steps_done;
  } else if (const auto* leaving = std::get_if<Leaving>(&message); leaving != nullptr && !leaving->reason.empty()) {
    session.refused = true;  // it said its last word
    TERSE_RETURN_IF_ERROR(run_.NoteMisbehaviour(event::kClientFailed, session.client, leaving->reason));
  }
  return absl::nullopt;  // after Leaving the connection ends by itself
}

Transition Engine::On(Disconnected event) {
  TERSE_RETURN_IF_ERROR(CloseSession(run_, event.session));
  TERSE_RETURN_IF_ERROR(FlushLedger());
  return phase_->OnLeft(run_);
}

Transition Engine::On(Drained event) {
  const auto it = run_.sessions.find(event.session);
  if (it == run_.sessions.end() || it->second.refused) return absl::nullopt;
  Session& session = it->second;
  session.draining = false;
  TERSE_RETURN_IF_ERROR(BringUp(run_, session));
  return session.version == run_.head.version ? phase_->OnReady(run_, session) : absl::nullopt;
}

Transition Engine::On(Misbehaved event) {
  const auto it = run_.sessions.find(event.session);
  if (it == run_.sessions.end() || it->second.refused) return absl::nullopt;
  Session& session = it->second;
  session.refused = true;
  TERSE_RETURN_IF_ERROR(run_.NoteMisbehaviour(event::kMessageRefused, session.client, event.reason));
  if (session.client < 0) return absl::nullopt;
  TERSE_RETURN_IF_ERROR(RecordFailure(run_, session.client, event.reason));
  return phase_->OnLeft(run_);
}

// Between rounds the book has no commit to wait for.
absl::Status Engine::FlushLedger() {
  if (run_.round_open || run_.round == 0) return absl::OkStatus();
  return run_.store->AddLedger(run_.book.Take(run_.round));
}

Transition Engine::On(Evaluated event) {
  if (run_.evaluating == event.round) run_.evaluating = absl::nullopt;
  if (event.result.ok()) {
    TERSE_RETURN_IF_ERROR(run_.store->SetEvaluation(event.round, *event.result));
    const std::string reason = TargetReached(run_.config->limits, event.round, *event.result);
    if (!reason.empty() && !run_.ending.has_value()) return End(RunState::kFinished, reason);
  } else {
    TERSE_RETURN_IF_ERROR(run_.Note(event::kEvaluationFailed, -1, std::string(event.result.status().message())));
  }
  return phase_->OnBackground(run_);
}

Transition Engine::On(CheckpointWritten event) {
  run_.checkpoint_running = false;
  if (!event.status.ok()) return Annotate(event.status, absl::StrCat("writing checkpoint ", event.version));
  run_.checkpoint_version = event.version;
  for (auto& [id, session] : run_.sessions) {
    if (session.awaits_checkpoint && !session.refused) TERSE_RETURN_IF_ERROR(BringUp(run_, session));
  }
  return phase_->OnBackground(run_);
}

Transition Engine::On(Tick event) {
  const std::string reason = TimeIsUp(run_.config->limits, run_.created_us, run_.MonotonicNow());
  if (!reason.empty()) return End(RunState::kFinished, reason);
  TERSE_RETURN_IF_ERROR(ReadmitDue(run_));
  TERSE_RETURN_IF_ERROR(run_.NoteRepeated(/*all=*/false));
  return phase_->OnTick(run_);
}

Transition Engine::On(StopRequested event) {
  TERSE_RETURN_IF_ERROR(run_.Note(event::kStopRequested, -1, "by the operator"));
  if (run_.ending.has_value()) return absl::nullopt;
  // The operator was told so: a process that dies before the last evaluation must not go on training.
  const std::string reason = "stopped by the operator";
  TERSE_RETURN_IF_ERROR(run_.store->SetRunState(RunState::kStopping, reason));
  return End(RunState::kStopped, reason);
}

Transition Engine::End(RunState state, const std::string& reason) {
  if (run_.ending.has_value()) return absl::nullopt;
  run_.ending = Ending{state, reason};
  return phase_->OnStop(run_);
}

Transition Engine::On(PauseRequested event) {
  if (run_.paused || run_.ending.has_value()) return absl::nullopt;
  TERSE_RETURN_IF_ERROR(Pause(run_, event.reason));
  return phase_->OnTick(run_);  // a buffered round without a quorum may be waiting beyond its deadline
}

Transition Engine::On(ResumeRequested event) {
  if (!run_.paused || run_.ending.has_value()) return absl::nullopt;
  run_.paused = false;
  run_.unusable_rounds = 0;
  TERSE_RETURN_IF_ERROR(run_.store->SetRunState(RunState::kActive, ""));
  TERSE_RETURN_IF_ERROR(run_.Note(event::kRunResumed, -1, "by the operator"));
  return phase_->OnTick(run_);
}

Transition Engine::On(AbortRequested event) { return phase_->OnAbort(run_, event.reason); }

Transition Engine::On(SetAsideRequested event) {
  TERSE_RETURN_IF_ERROR(SetAside(run_, event.client, event.until_us, event.reason));
  return phase_->OnTick(run_);
}

void Engine::PublishView() {
  EngineView view;
  view.phase = std::string(PhaseTitle(phase_->name()));
  if (run_.paused && phase_->name() == PhaseName::kSelecting) view.phase = "paused";
  view.round = run_.round;
  view.head = run_.head;
  view.iterations = run_.iterations;
  view.ending = run_.ending.has_value();
  view.ended = phase_->name() == PhaseName::kFinishing && !run_.evaluating.has_value() && !run_.checkpoint_running;
  for (const auto& [id, session] : run_.sessions) {
    if (session.client < 0) continue;
    SessionView one;
    one.client = session.client;
    one.version = session.version.value_or(-1);
    one.steps_done = session.steps_done;
    one.device = session.device;
    if (session.norm_code.has_value()) one.residual_norm = NormFrom(*session.norm_code);
    one.state = session.assigned_round != 0       ? "training"
                : session.set_aside_until_us != 0 ? "set aside"
                : !session.version.has_value()    ? "syncing"
                                                  : "waiting";
    view.sessions.push_back(std::move(one));
  }
  absl::MutexLock lock(&view_mutex_);
  view_ = std::move(view);
}

EngineView Engine::View() const {
  absl::MutexLock lock(&view_mutex_);
  return view_;
}

}  // namespace terse
