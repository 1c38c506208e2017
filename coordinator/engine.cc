#include "coordinator/engine.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/downstream.h"
#include "coordinator/sessions.h"
#include "core/status.h"

namespace terse {

Engine::Engine(Options options) {
  run_.config = std::make_shared<const RunConfig>(std::move(options.config));
  run_.codec = options.codec;
  run_.store = options.store;
  run_.background = options.background;
  run_.clock = options.clock;
  run_.on_event = std::move(options.on_event);
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Resume(Options options) {
  std::unique_ptr<Engine> engine(new Engine(std::move(options)));
  TERSE_RETURN_IF_ERROR(engine->Recover());
  TERSE_RETURN_IF_ERROR(engine->Begin());
  return engine;
}

absl::Status Engine::Recover() {
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> record, run_.store->Run());
  if (!record.has_value()) return absl::FailedPreconditionError("the store holds no run");
  run_.lineage = record->lineage;
  TERSE_ASSIGN_OR_RETURN(run_.head, run_.store->GetHead());
  TERSE_ASSIGN_OR_RETURN(Checkpoint checkpoint, run_.store->ReadNewestCheckpoint());
  run_.checkpoint_version = checkpoint.version;
  run_.weights = std::move(checkpoint.weights);
  if (static_cast<int64_t>(run_.weights.size()) != run_.layout().size()) {
    return absl::DataLossError(absl::StrCat("checkpoint ", checkpoint.version, " holds ", run_.weights.size(),
                                            " parameters, the model has ", run_.layout().size()));
  }
  TERSE_ASSIGN_OR_RETURN(const std::vector<LogMessage> log, run_.store->ReadLog(checkpoint.version, run_.head.version));
  std::vector<float> scratch;
  for (const LogMessage& message : log) {
    TERSE_RETURN_IF_ERROR(
        Annotate(ApplyDownstream(*run_.codec, message.downstream, &scratch, absl::MakeSpan(run_.weights)),
                 absl::StrCat("replaying the log, version ", message.version)));
  }
  if (HashWeights(run_.weights) != run_.head.model_hash) {
    return absl::DataLossError(absl::StrCat("checkpoint ", checkpoint.version,
                                            " and the log after it do not give version ", run_.head.version,
                                            ": restore the state directory from a backup"));
  }
  return absl::OkStatus();
}

absl::Status Engine::Begin() {
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundRecord> round, run_.store->LastRound());
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> record, run_.store->Run());
  run_.stopping = record->state == RunState::kStopped;
  if (round.has_value()) {
    run_.round = round->id;
    run_.round_open = round->state == RoundState::kOpen;
    run_.round_opened_us = round->opened_us;
  }
  const bool done = record->state != RunState::kActive || run_.head.version >= run_.config->rounds.count;
  const PhaseName first = done              ? PhaseName::kFinishing
                          : run_.round_open ? PhaseName::kCollecting
                                            : PhaseName::kSelecting;
  TERSE_RETURN_IF_ERROR(Move(first));
  PublishView();
  return absl::OkStatus();
}

absl::Status Engine::Validate(const FromClient& message) const {
  const auto* update = std::get_if<Update>(&message);
  if (update == nullptr) return absl::OkStatus();
  if (update->round < 1 || update->train_us < 0 || !std::isfinite(update->loss)) {
    return absl::InvalidArgumentError("the header of the update has an impossible round, time or loss");
  }
  if (update->update_id.IsZero()) return absl::InvalidArgumentError("the update has no id");
  return run_.codec->Validate(update->message);
}

absl::Status Engine::Handle(Event event) {
  Transition next = std::visit([this](auto&& one) { return On(std::move(one)); }, std::move(event));
  if (!next.ok()) return next.status();
  TERSE_RETURN_IF_ERROR(Move(*next));
  PublishView();
  return absl::OkStatus();
}

absl::Status Engine::Move(absl::optional<PhaseName> next) {
  while (next.has_value()) {
    phase_ = MakePhase(*next);
    Transition transition = phase_->Enter(run_);
    if (!transition.ok()) return transition.status();
    next = *transition;
  }
  return absl::OkStatus();
}

absl::Status Engine::Close() {
  if (run_.round == 0) return absl::OkStatus();
  BookWire(run_);
  return run_.store->AddLedger(run_.book.Take(run_.round));
}

int64_t Engine::NextDeadlineMicros() const { return phase_->DeadlineMicros(run_); }

Transition Engine::On(Connected event) {
  run_.sessions[event.session].link = std::move(event.link);
  return absl::nullopt;
}

Transition Engine::On(Received event) {
  const auto it = run_.sessions.find(event.session);
  if (it == run_.sessions.end()) return absl::nullopt;  // it disconnected meanwhile
  Session& session = it->second;
  const bool checks_in = std::holds_alternative<CheckIn>(event.message);
  if (checks_in != (session.client < 0)) {
    // A replaced session may still have messages under way; only a live one is told.
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
    return phase_->OnUpdate(run_, session, std::move(*update));
  } else if (auto* progress = std::get_if<Progress>(&message)) {
    if (progress->round == session.assigned_round) session.steps_done = progress->steps_done;
  }
  return absl::nullopt;  // Leaving: the connection ends by itself
}

Transition Engine::On(Disconnected event) {
  TERSE_RETURN_IF_ERROR(CloseSession(run_, event.session));
  TERSE_RETURN_IF_ERROR(FlushLedger());
  return absl::nullopt;
}

// Between rounds the book has no commit to wait for.
absl::Status Engine::FlushLedger() {
  if (run_.round_open || run_.round == 0) return absl::OkStatus();
  return run_.store->AddLedger(run_.book.Take(run_.round));
}

Transition Engine::On(Evaluated event) {
  if (run_.evaluating == event.round) run_.evaluating = absl::nullopt;
  if (event.result.ok()) {
    TERSE_RETURN_IF_ERROR(run_.store->SetEvaluation(event.round, event.result->accuracy, event.result->loss));
  } else {
    TERSE_RETURN_IF_ERROR(run_.Note("evaluation_failed", -1, std::string(event.result.status().message())));
  }
  return phase_->OnBackground(run_);
}

Transition Engine::On(CheckpointWritten event) {
  run_.checkpoint_running = false;
  if (!event.status.ok()) return Annotate(event.status, absl::StrCat("writing checkpoint ", event.version));
  run_.checkpoint_version = event.version;
  return phase_->OnBackground(run_);
}

Transition Engine::On(Tick event) { return phase_->OnTick(run_); }

Transition Engine::On(StopRequested event) {
  run_.stopping = true;
  TERSE_RETURN_IF_ERROR(run_.Note("stop_requested", -1, "by the operator"));
  return phase_->OnStop(run_);
}

void Engine::PublishView() {
  EngineView view;
  view.phase = std::string(PhaseTitle(phase_->name()));
  view.round = run_.round;
  view.head = run_.head;
  view.ended = phase_->name() == PhaseName::kFinishing && !run_.evaluating.has_value() && !run_.checkpoint_running;
  for (const auto& [id, session] : run_.sessions) {
    if (session.client < 0) continue;
    SessionView one;
    one.client = session.client;
    one.version = session.version.value_or(-1);
    one.steps_done = session.steps_done;
    const bool training = session.assigned_round == run_.round && !run_.received.contains(session.client);
    one.state = !session.version.has_value() ? "syncing" : training ? "training" : "waiting";
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
