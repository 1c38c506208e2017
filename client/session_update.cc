// The life of an update: train, compress, seal, push, settle.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/observations.h"
#include "client/session.h"
#include "compression/bundle.h"
#include "core/codec_choices.h"
#include "core/epochs.h"
#include "core/fault.h"
#include "core/norm_code.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr int64_t kProgressEveryMicros = 20'000'000;

// Returns the run's iteration at which the version begins: every version was one round of everybody's local steps, in a
// buffered run of as many clients' as the buffer holds.
int64_t FirstIteration(const RunConfig& config, int64_t base_version) {
  const int64_t versions =
      config.rounds.buffered ? base_version * config.rounds.cohort / config.rounds.clients : base_version;
  return versions * config.train.local_steps;
}

}  // namespace

absl::Status ClientSession::OnAssignment(OutboundLink* link, const Assignment& assignment) {
  TERSE_FAILPOINT("client.assignment.received");
  if (options_.state->state().sealed.has_value()) return absl::OkStatus();  // no new work while SEALED
  if (work_->model.version() != absl::optional<int64_t>(assignment.base_version)) {
    // A resync is on its way, after which the coordinator assigns again.
    return absl::OkStatus();
  }
  TERSE_RETURN_IF_ERROR(Wake());
  const absl::Status sealed = TrainAndSeal(link, assignment);
  // An update that was not sealed never happened: the next connection starts from what is stored. A cancelled training
  // has put its trainer back by itself.
  if (!sealed.ok() && !absl::IsCancelled(sealed)) work_ = absl::nullopt;
  return sealed.ok() ? Push(link, assignment.packed) : sealed;
}

absl::Status ClientSession::TrainAndSeal(OutboundLink* link, const Assignment& assignment) {
  if (assignment.choice >= static_cast<int64_t>(UpdateChoices(*work_->config).size())) {
    return absl::UnavailableError(
        absl::StrCat("the assignment names coding ", assignment.choice, ", which the run has not"));
  }
  const int64_t start = options_.clock->MonotonicMicros();
  int64_t reported = start;
  int64_t steps = 0;
  const auto keep_going = [&] {
    const int64_t now = options_.clock->MonotonicMicros();
    if (now - reported >= kProgressEveryMicros) {
      reported = now;
      // A lost connection does not stop the training: its update is sealed and pushed on the next one.
      link->Send(Progress{assignment.round, steps}).IgnoreError();
    }
    ++steps;
    return options_.keep_going();
  };
  TERSE_ASSIGN_OR_RETURN(const TrainResult result, DoTask(assignment, keep_going));
  if (const absl::Status sound = CheckMetrics(result.metrics); !sound.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("the trainer reports what is no metric: ", sound.message()));
  }
  TERSE_FAILPOINT("client.train.done");
  const int64_t train_us = options_.clock->MonotonicMicros() - start;
  Log(LogLevel::kDebug, assignment.round,
      absl::StrFormat("trained %d steps from version %d in %.3f s, loss %.4g", assignment.local_steps,
                      assignment.base_version, static_cast<double>(train_us) * 1e-6, result.mean_loss));
  if (!result.message.empty()) return SealUpdate(assignment, result.message, train_us, result);
  const CodecKey key = {work_->config->seed, static_cast<uint64_t>(assignment.round),
                        static_cast<uint64_t>(work_->client_index)};
  work_->feedback->Observe(work_->model.weights(), work_->scratch);
  TERSE_ASSIGN_OR_RETURN(std::string message, work_->feedback->Compress(&work_->scratch, key, assignment.choice));
  if (work_->config->train.optimizer.momentum_masking) {
    TERSE_ASSIGN_OR_RETURN(const auto positions, work_->codec->SentPositions(message));
    if (positions.has_value()) work_->trainer->MaskMomentum(*positions);
  }
  return SealUpdate(assignment, std::move(message), train_us, result);
}

absl::StatusOr<TrainResult> ClientSession::DoTask(const Assignment& assignment,
                                                  const std::function<bool()>& keep_going) {
  Work& work = *work_;
  const absl::Span<const float> weights = work.model.weights();
  work.scratch.resize(weights.size());
  const absl::Span<float> result = absl::MakeSpan(work.scratch);
  switch (TaskFrom(*work.config, assignment.base_version)) {
    case ClientTask::kFullGradient:
      return work.trainer->Gradient({weights, {}}, keep_going, result);
    case ClientTask::kGradientStep:
      return work.trainer->Gradient({weights, work.model.snapshot()}, keep_going, result);
    case ClientTask::kTrain:
      break;
  }
  const int64_t first = assignment.first_iteration.has_value() ? *assignment.first_iteration
                                                               : FirstIteration(*work.config, assignment.base_version);
  const LocalPlan plan = {assignment.local_steps, first, assignment.round, assignment.base_version};
  return work.trainer->Train(weights, plan, keep_going, result);
}

absl::Status ClientSession::SealUpdate(const Assignment& assignment, std::string message, int64_t train_us,
                                       const TrainResult& result) {
  SealedUpdate update;
  update.update_id = MakeUpdateId(work_->lineage, assignment.round, work_->client_index,
                                  options_.state->state().prev_applied, message);
  update.round = assignment.round;
  update.base_version = assignment.base_version;
  update.train_us = train_us;
  update.loss = result.mean_loss;
  update.metrics = result.metrics;
  update.cohort = result.cohort;
  update.message = std::move(message);
  work_->scratch = std::vector<float>();  // makes room: the trainer's state may be as large
  TERSE_ASSIGN_OR_RETURN(std::string trainer_state, work_->trainer->SaveState());
  trainer_state = WithObservations(work_->feedback->Observations(), std::move(trainer_state));
  std::string history = work_->history.has_value() ? work_->history->Serialize() : "";
  TERSE_RETURN_IF_ERROR(StoredStatus(
      options_.state->Seal(work_->feedback->dense(), std::move(update), std::move(trainer_state), std::move(history))));
  work_->trainer->OnSealed(assignment.round);
  if (options_.observer != nullptr) options_.observer->OnSealed({assignment.local_steps, train_us, result.mean_loss});
  return absl::OkStatus();
}

absl::Status ClientSession::Push(OutboundLink* link, bool may_pack) {
  const SealedUpdate& sealed = *options_.state->state().sealed;
  TERSE_FAILPOINT("client.upload.before_send");
  Update update = {sealed.round, sealed.update_id, sealed.train_us, sealed.loss, sealed.message};
  update.metrics = sealed.metrics;
  update.cohort = sealed.cohort;
  if (may_pack && work_->history.has_value() && !IsBundle(sealed.message)) {
    TERSE_ASSIGN_OR_RETURN(std::string packed, work_->codec->Pack(sealed.message, *work_->history));
    update.packed = packed.size() < sealed.message.size();
    if (update.packed) update.message = std::move(packed);
  }
  absl::optional<int> norm_code;
  if (work_->residual_norm.has_value()) norm_code = NormCode(*work_->residual_norm);
  if (said_norm_code_ != norm_code) update.norm_code = norm_code;
  const std::string sent =
      absl::StrCat("sent the update: ", update.message.size(), " bytes", update.packed ? ", packed" : "",
                   update.norm_code.has_value() ? ", and its residual's norm" : "");
  TERSE_RETURN_IF_ERROR(link->Send(std::move(update)));  // a dense one is as large as the model
  said_norm_code_ = norm_code;
  TERSE_FAILPOINT("client.upload.sent");
  Log(LogLevel::kDebug, sealed.round, sent);
  return absl::OkStatus();
}

// A receipt changes nothing: the verdict is the commit.
absl::Status ClientSession::OnReceipt(const Receipt& receipt) {
  TERSE_FAILPOINT("client.receipt.received");
  const absl::optional<SealedUpdate>& sealed = options_.state->state().sealed;
  const bool is_mine = sealed.has_value() && sealed->update_id == receipt.update_id;
  if (is_mine) Log(LogLevel::kDebug, sealed->round, "the coordinator has received the update");
  if (!Mutated(Mutant::kSettleOnReceipt)) return absl::OkStatus();
  return OnVerdict({Outcome::kApplied, receipt.update_id, receipt.update_id, ""});
}

void ClientSession::NoteSettled(Outcome outcome) {
  work_->residual_norm = work_->feedback->Norm();
  if (options_.observer != nullptr) options_.observer->OnSettled(outcome, *work_->residual_norm);
}

absl::Status ClientSession::OnVerdict(const Verdict& verdict) {
  TERSE_FAILPOINT("client.verdict.received");
  ClientState* state = options_.state;
  const absl::optional<SealedUpdate>& sealed = state->state().sealed;
  // A RESET that names no update answers a check-in that named none. Any other verdict is about an update that was
  // settled before: what was sealed since then must not suffer for it.
  if (verdict.update_id != (sealed.has_value() ? sealed->update_id : Id128{})) return absl::OkStatus();
  if (verdict.outcome == Outcome::kReset) {
    TERSE_RETURN_IF_ERROR(Wake());
    const double lost = work_->feedback->Reset();
    Log(LogLevel::kWarn, 0,
        absl::StrFormat("the coordinator asked for a fresh residual (%s); %.3g in L2 norm is lost", verdict.reason,
                        lost));
    TERSE_RETURN_IF_ERROR(StoredStatus(state->Reset(verdict.last_applied)));
    work_->trainer->OnSettled(/*is_left=*/false);
    work_->BeginHistory();
    NoteSettled(Outcome::kReset);
    return absl::OkStatus();
  }
  // SendReady pushes what is pending again.
  if (!sealed.has_value() || verdict.outcome == Outcome::kPending) return absl::OkStatus();
  const bool applied = verdict.outcome == Outcome::kApplied;
  const int64_t round = sealed->round;
  const bool is_bundle = IsBundle(sealed->message);
  if (applied) {
    Log(LogLevel::kDebug, round, "the update was applied");
  } else {
    TERSE_RETURN_IF_ERROR(Wake());  // the feedback knows what becomes of it
    Log(LogLevel::kWarn, round,
        absl::StrCat(
            "the update of round ", round,
            verdict.reason.empty() ? " came too late" : absl::StrCat(" was not applied (", verdict.reason, ")"),
            " and ",
            is_bundle                          ? "is sent again for the next one"
            : work_->feedback->folds_forward() ? "folds into the next one"
                                               : "is dropped"));
  }
  TERSE_RETURN_IF_ERROR(StoredStatus(state->Settle(applied)));
  if (work_->trainer != nullptr) work_->trainer->OnSettled(is_bundle && !applied);
  if (applied && work_->history.has_value() && !is_bundle) {
    TERSE_RETURN_IF_ERROR(work_->codec->AddToHistory(state->state().minus, &*work_->history));
  }
  if (work_->feedback != nullptr) {
    if (work_->feedback->pending()) TERSE_RETURN_IF_ERROR(work_->feedback->Settle(applied));
  } else {  // at rest: it is made of what is stored
    work_->residual_norm = absl::nullopt;
    if (options_.observer == nullptr) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(Wake());
  }
  NoteSettled(verdict.outcome);
  return absl::OkStatus();
}

}  // namespace terse
