// Training without LibTorch whose results are known beforehand: the delta of a client's s-th Train call is a pure
// function of (client, s), and every value is a multiple of 2^-10 below 2 in magnitude, so sums of many of them are
// exact in float32 and conservation can be checked bit for bit. No GoogleTest in here: real processes of end-to-end
// tests link it too.
#ifndef TERSE_TESTS_TESTING_GRID_TRAINER_H_
#define TERSE_TESTS_TESTING_GRID_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "core/layout.h"
#include "core/trainer.h"

namespace terse {

// Four tensors, 1,557 parameters.
const Layout& GridLayout();
// One tensor, 78,400 parameters: a dense update fills more than one chunk of the wire.
const Layout& WideGridLayout();
// Returns the layout for the processes of end-to-end tests: the wide one where TERSE_WIDE_GRID is in the environment.
const Layout& EnvironmentGridLayout();
// Version 0 of a run on one of the layouts: multiples of 2^-10.
std::vector<float> GridInitialWeights(const Layout& layout = GridLayout());
// Returns the delta of Train call number `step_index` (0, 1, ...) of client `client`, whatever the weights and local
// steps. As in real models some rows move more than others, and they are each client's own: every fourth, the rest by a
// sixteenth.
std::vector<float> GridDelta(int64_t client, int64_t step_index, const Layout& layout = GridLayout());
// The loss that goes with it; finite.
float GridLoss(int64_t client, int64_t step_index);

// Training samples of client `client`.
constexpr int64_t GridSamples(int64_t client) { return 10 * (client + 1); }

// `client` is the index of its shard, so a run needs partition "iid". The saved state holds the number of calls so far,
// so a sealed update and the counter behind it are on disk together: after s seals the next delta is GridDelta(client,
// s).
class GridTrainer : public LocalTrainer {
 public:
  explicit GridTrainer(int64_t client, const Layout& layout = GridLayout(), bool starts = false)
      : client_(client), layout_(layout), starts_(starts) {}

  const Layout& layout() const override { return layout_; }
  std::vector<float> StartWeights() const override {
    return starts_ ? GridInitialWeights(layout_) : std::vector<float>();
  }
  int64_t samples() const override { return GridSamples(client_); }
  std::string device() const override { return "grid:" + std::to_string(client_); }
  absl::StatusOr<TrainResult> Train(absl::Span<const float> weights, const LocalPlan& plan,
                                    const std::function<bool()>& keep_going, absl::Span<float> delta) override;
  // Gives what Train gives, whatever the plan.
  absl::StatusOr<TrainResult> Gradient(const GradientPlan& plan, const std::function<bool()>& keep_going,
                                       absl::Span<float> gradient) override;
  void MaskMomentum(absl::Span<const int64_t> positions) override {}
  absl::StatusOr<std::string> SaveState() override;
  absl::Status RestoreState(absl::string_view state) override;

 private:
  const int64_t client_;
  const Layout& layout_;
  const bool starts_;
  int64_t calls_ = 0;
};

// `layout` must outlive the trainers. `starts`: they make version 0 by themselves. `client`: they are all that
// client's, whatever its shard is, which is another one after a move between relays.
TrainerFactory GridTrainerFactory(const Layout& layout = GridLayout(), bool starts = false,
                                  absl::optional<int64_t> client = absl::nullopt);
// Returns whether TERSE_GRID_STARTS is in the environment, for the processes of end-to-end tests.
bool EnvironmentGridStarts();
// Returns the number in TERSE_GRID_CLIENT, likewise; nullopt where that is not set.
absl::optional<int64_t> EnvironmentGridClient();

// Accuracy is a pure function of the weights, in 0..1.
class GridEvaluator : public Evaluator {
 public:
  absl::StatusOr<Evaluation> Evaluate(absl::Span<const float> weights) override;

  bool has_accuracy = true;  // false: as in regression
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_GRID_TRAINER_H_
