#include "tests/testing/grid_trainer.h"

#include <cmath>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/random.h"

namespace terse {
namespace {

constexpr uint64_t kSeed = 0x7e25e;
constexpr int64_t kBusyRowEvery = 4;

// A multiple of 2^-10 in (-2, 2). The sum of two uniform numbers, so that large values are rarer than small ones.
float GridValue(Random* random) {
  const int64_t sum = static_cast<int64_t>(random->Below(2048)) + static_cast<int64_t>(random->Below(2048));
  return static_cast<float>(sum - 2047) * 0x1p-10f;
}

std::vector<float> GridVector(uint64_t stream, const Layout& layout) {
  Random random(kSeed, stream);
  std::vector<float> values(layout.size());
  for (float& value : values) value = GridValue(&random);
  return values;
}

std::string StatePrefix(int64_t client) { return absl::StrCat("grid client ", client, " calls "); }

}  // namespace

const Layout& GridLayout() {
  static const Layout* const layout = new Layout(
      *Layout::Create({{"grid.weight", {32, 40}}, {"grid.bias", {40}}, {"head.weight", {6, 39}}, {"head.bias", {3}}}));
  return *layout;
}

const Layout& WideGridLayout() {
  static const Layout* const layout = new Layout(*Layout::Create({{"wide.weight", {280, 280}}}));
  return *layout;
}

const Layout& EnvironmentGridLayout() {
  return std::getenv("TERSE_WIDE_GRID") == nullptr ? GridLayout() : WideGridLayout();
}

std::vector<float> GridInitialWeights(const Layout& layout) { return GridVector(0, layout); }

std::vector<float> GridDelta(int64_t client, int64_t step_index, const Layout& layout) {
  std::vector<float> delta =
      GridVector(1 + static_cast<uint64_t>(client) * 1000003 + static_cast<uint64_t>(step_index), layout);
  for (const TensorSpec& tensor : layout.tensors()) {
    if (tensor.shape.size() < 2) continue;
    const int64_t width = tensor.size / tensor.shape[0];
    for (int64_t i = 0; i < tensor.size; ++i) {
      float& value = delta[tensor.offset + i];
      // Adding zero leaves no zero with a sign, which a sum would not keep.
      if ((i / width + client) % kBusyRowEvery != 0) value = std::trunc(value * 0x1p6f) * 0x1p-10f + 0.0f;
    }
  }
  return delta;
}

float GridLoss(int64_t client, int64_t step_index) {
  return 1.0f / static_cast<float>(1 + step_index) + 0x1p-6f * static_cast<float>(client);
}

absl::StatusOr<TrainResult> GridTrainer::Train(absl::Span<const float> weights, const LocalPlan& plan,
                                               const std::function<bool()>& keep_going, absl::Span<float> delta) {
  if (weights.size() != delta.size() || static_cast<int64_t>(delta.size()) != layout_.size()) {
    return absl::InternalError(absl::StrCat("grid trainer: ", weights.size(), " weights, ", delta.size(), " deltas"));
  }
  for (int64_t i = 0; i < plan.steps; ++i) {
    if (!keep_going()) return absl::CancelledError("stopped between two local steps");
  }
  const std::vector<float> values = GridDelta(client_, calls_, layout_);
  std::copy(values.begin(), values.end(), delta.begin());
  const TrainResult result{GridLoss(client_, calls_), plan.steps};
  ++calls_;
  return result;
}

absl::StatusOr<TrainResult> GridTrainer::Gradient(const GradientPlan& plan, const std::function<bool()>& keep_going,
                                                  absl::Span<float> gradient) {
  if (!plan.snapshot.empty() && plan.snapshot.size() != plan.weights.size()) {
    return absl::InternalError(absl::StrCat("grid trainer: a snapshot of ", plan.snapshot.size(), " weights"));
  }
  return Train(plan.weights, {1, 0}, keep_going, gradient);
}

absl::StatusOr<std::string> GridTrainer::SaveState() { return absl::StrCat(StatePrefix(client_), calls_); }

absl::Status GridTrainer::RestoreState(absl::string_view state) {
  int64_t calls = 0;
  if (!absl::ConsumePrefix(&state, StatePrefix(client_)) || !absl::SimpleAtoi(state, &calls) || calls < 0) {
    return absl::DataLossError(absl::StrCat("not the state of grid client ", client_));
  }
  calls_ = calls;
  return absl::OkStatus();
}

TrainerFactory GridTrainerFactory(const Layout& layout, bool starts, absl::optional<int64_t> client) {
  return [&layout, starts, client](const RunConfig& config, const Shard& shard,
                                   absl::string_view) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
    return std::unique_ptr<LocalTrainer>(std::make_unique<GridTrainer>(client.value_or(shard.index), layout, starts));
  };
}

bool EnvironmentGridStarts() { return std::getenv("TERSE_GRID_STARTS") != nullptr; }

absl::optional<int64_t> EnvironmentGridClient() {
  const char* const text = std::getenv("TERSE_GRID_CLIENT");
  int64_t client = 0;
  return text != nullptr && absl::SimpleAtoi(text, &client) ? absl::make_optional(client) : absl::nullopt;
}

absl::StatusOr<Evaluation> GridEvaluator::Evaluate(absl::Span<const float> weights) {
  double sum = 0;
  for (float weight : weights) sum += weight;
  const double accuracy = 0.5 + 0.5 * std::sin(sum);
  return Evaluation{has_accuracy ? absl::make_optional(accuracy) : absl::nullopt, 1.0 - accuracy};
}

}  // namespace terse
