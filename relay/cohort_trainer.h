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
struct CohortState {
  SealedCohort sealed;
  std::string bundle;  // of a relay that forwards: the update; else empty
};
std::string SerializeCohortState(const CohortState& state);
// DATA_LOSS for bytes that it does not write.
absl::StatusOr<CohortState> ParseCohortState(absl::string_view bytes);

// `delta` is the mean of the round's updates. A relay that forwards gives a bundle of them, and the same bundle again
// in place of another round, as long as it is not applied. Not thread-safe.
class CohortTrainer : public LocalTrainer {
 public:
  // `desk` must outlive it.
  CohortTrainer(CohortDesk* desk, Layout layout, bool forwards)
      : desk_(desk), layout_(std::move(layout)), forwards_(forwards) {}

  const Layout& layout() const override { return layout_; }
  int64_t samples() const override { return desk_->samples(); }
  std::string device() const override { return "relay"; }
  absl::StatusOr<TrainResult> Train(absl::Span<const float> weights, const LocalPlan& plan,
                                    const std::function<bool()>& keep_going, absl::Span<float> delta) override;
  void MaskMomentum(absl::Span<const int64_t>) override {}  // the clients have momentum, a relay has none
  absl::StatusOr<std::string> SaveState() override { return SerializeCohortState({desk_->taken(), bundle_}); }
  // FAILED_PRECONDITION for the state of a relay of the other mode.
  absl::Status RestoreState(absl::string_view state) override;
  void OnSealed(int64_t) override { desk_->Seal(); }
  void OnSettled(bool is_left) override { is_left_ = is_left && forwards_; }
  void OnFinished(absl::string_view reason, absl::Span<const float>) override { desk_->Finish(std::string(reason)); }

 private:
  // The bundle that was not applied.
  absl::StatusOr<TrainResult> HandUpAgain() const;

  CohortDesk* const desk_;
  const Layout layout_;
  const bool forwards_;
  std::string bundle_;    // handed up last
  bool is_left_ = false;  // it was not applied, and never will be
};

}  // namespace terse

#endif  // TERSE_RELAY_COHORT_TRAINER_H_
