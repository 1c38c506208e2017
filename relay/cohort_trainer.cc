#include "relay/cohort_trainer.h"

#include <algorithm>
#include <utility>

#include "core/fault.h"
#include "core/status.h"
#include "storage/byte_io.h"

namespace terse {

std::string SerializeSealedCohort(const SealedCohort& sealed) {
  std::string bytes;
  PutField(&bytes, sealed.lineage);
  PutField(&bytes, sealed.round);
  return bytes;
}

absl::StatusOr<SealedCohort> ParseSealedCohort(absl::string_view bytes) {
  if (bytes.size() != sizeof(Id128) + sizeof(int64_t)) {
    return absl::DataLossError("the state does not say which round of a relay is in its update");
  }
  SealedCohort sealed;
  sealed.lineage = TakeField<Id128>(&bytes);
  sealed.round = TakeField<int64_t>(&bytes);
  return sealed;
}

absl::Status CohortTrainer::RestoreState(absl::string_view state) {
  TERSE_ASSIGN_OR_RETURN(const SealedCohort sealed, ParseSealedCohort(state));
  desk_->SetSealed(sealed);
  return absl::OkStatus();
}

absl::StatusOr<TrainResult> CohortTrainer::Train(absl::Span<const float>, const LocalPlan& plan,
                                                 const std::function<bool()>& keep_going, absl::Span<float> delta) {
  RoundOrder order;
  order.plan.local_steps = plan.steps;
  order.plan.first_iteration = plan.first_iteration;
  order.base_version = plan.version;
  TERSE_ASSIGN_OR_RETURN(CohortResult round, desk_->MakeRound(order, keep_going));
  TERSE_FAILPOINT("relay.result.handed_up");
  std::copy(round.delta.begin(), round.delta.end(), delta.begin());
  TrainResult result;
  result.mean_loss = static_cast<float>(round.loss);
  result.samples = round.cohort.samples;
  result.metrics = std::move(round.metrics);
  result.cohort = round.cohort;
  return result;
}

}  // namespace terse
