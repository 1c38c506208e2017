#include "relay/cohort_trainer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compression/bundle.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/byte_io.h"

namespace terse {

std::string SerializeCohortState(const CohortState& state) {
  std::string bytes;
  PutField(&bytes, state.sealed.lineage);
  PutField(&bytes, state.sealed.round);
  bytes += state.bundle;
  return bytes;
}

absl::StatusOr<CohortState> ParseCohortState(absl::string_view bytes) {
  CohortState state;
  const bool whole = bytes.size() >= sizeof(Id128) + sizeof(int64_t);
  if (whole) {
    state.sealed.lineage = TakeField<Id128>(&bytes);
    state.sealed.round = TakeField<int64_t>(&bytes);
    state.bundle = std::string(bytes);
  }
  if (!whole || !(bytes.empty() || IsBundle(bytes))) {
    return absl::DataLossError("the state does not say which round of a relay is in its update");
  }
  return state;
}

absl::Status CohortTrainer::RestoreState(absl::string_view state) {
  TERSE_ASSIGN_OR_RETURN(CohortState restored, ParseCohortState(state));
  if (restored.bundle.empty() == forwards_) {
    return absl::FailedPreconditionError(
        forwards_
            ? "the relay's state has a residual of --mode recompress, which nobody can forward; start it with that "
              "mode, or with an empty --state: the residual is lost then, and counted as one"
            : "the relay's state is of --mode forward; start it with that mode, or with an empty --state");
  }
  desk_->SetSealed(restored.sealed);
  bundle_ = std::move(restored.bundle);
  return absl::OkStatus();
}

absl::StatusOr<TrainResult> CohortTrainer::HandUpAgain() const {
  TERSE_ASSIGN_OR_RETURN(const std::vector<BundledUpdate> updates, ParseBundle(bundle_));
  TrainResult result;
  result.cohort = CohortOf(updates);
  result.samples = result.cohort.samples;
  result.message = bundle_;
  return result;
}

absl::StatusOr<TrainResult> CohortTrainer::Train(absl::Span<const float>, const LocalPlan& plan,
                                                 const std::function<bool()>& keep_going, absl::Span<float> delta) {
  if (forwards_) std::fill(delta.begin(), delta.end(), 0.0f);
  if (is_left_) return HandUpAgain();
  RoundOrder order;
  order.plan.local_steps = plan.steps;
  order.plan.first_iteration = plan.first_iteration;
  order.base_version = plan.version;
  TERSE_ASSIGN_OR_RETURN(CohortResult round, desk_->MakeRound(order, keep_going));
  TERSE_FAILPOINT("relay.result.handed_up");
  TrainResult result;
  if (forwards_) {
    result.message = bundle_ = std::move(round.bundle);
  } else {
    std::copy(round.delta.begin(), round.delta.end(), delta.begin());
  }
  result.mean_loss = static_cast<float>(round.loss);
  result.samples = round.cohort.samples;
  result.metrics = std::move(round.metrics);
  result.cohort = round.cohort;
  return result;
}

}  // namespace terse
