// The training of a relay: a round of its own clients.
#ifndef TERSE_RELAY_COHORT_TRAINER_H_
#define TERSE_RELAY_COHORT_TRAINER_H_

#include <string>
#include <utility>

#include "core/trainer.h"
#include "relay/cohort_desk.h"

namespace terse {

// State that is saved with the relay's update: which round of its own is in it. Thus one rename decides both, whether
// the update counts and whether the round's clients hear APPLIED.
std::string SerializeSealedCohort(const SealedCohort& sealed);
// DATA_LOSS for bytes that it does not write.
absl::StatusOr<SealedCohort> ParseSealedCohort(absl::string_view bytes);

// `delta` is the mean of the round's updates. Not thread-safe.
class CohortTrainer : public LocalTrainer {
 public:
  // `desk` must outlive it.
  CohortTrainer(CohortDesk* desk, Layout layout) : desk_(desk), layout_(std::move(layout)) {}

  const Layout& layout() const override { return layout_; }
  int64_t samples() const override { return desk_->samples(); }
  std::string device() const override { return "relay"; }
  absl::StatusOr<TrainResult> Train(absl::Span<const float> weights, const LocalPlan& plan,
                                    const std::function<bool()>& keep_going, absl::Span<float> delta) override;
  void MaskMomentum(absl::Span<const int64_t>) override {}  // the clients have momentum, a relay has none
  absl::StatusOr<std::string> SaveState() override { return SerializeSealedCohort(desk_->taken()); }
  absl::Status RestoreState(absl::string_view state) override;
  void OnSealed(int64_t) override { desk_->Seal(); }
  void OnFinished(absl::string_view reason, absl::Span<const float>) override { desk_->Finish(std::string(reason)); }

 private:
  CohortDesk* const desk_;
  const Layout layout_;
};

}  // namespace terse

#endif  // TERSE_RELAY_COHORT_TRAINER_H_
