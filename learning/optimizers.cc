#include "learning/optimizers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

// The loops are compiled for wider vectors too and the best one is taken at run time. Addition, multiplication,
// division and square root round the same in all of them, so the choice does not show in the result.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TERSE_WIDE_VECTORS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TERSE_WIDE_VECTORS
#endif

namespace terse {
namespace {

TERSE_WIDE_VECTORS
void SgdLoop(int64_t size, float rate, const float* __restrict gradient, float* __restrict weights) {
  for (int64_t i = 0; i < size; ++i) weights[i] -= rate * gradient[i];
}

TERSE_WIDE_VECTORS
void MomentumLoop(int64_t size, float rate, float momentum, const float* __restrict gradient,
                  float* __restrict velocity, float* __restrict weights) {
  for (int64_t i = 0; i < size; ++i) {
    const float v = momentum * velocity[i] + gradient[i];
    velocity[i] = v;
    weights[i] -= rate * v;
  }
}

TERSE_WIDE_VECTORS
void NesterovLoop(int64_t size, float rate, float momentum, const float* __restrict gradient,
                  float* __restrict velocity, float* __restrict weights) {
  for (int64_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float v = momentum * velocity[i] + g;
    velocity[i] = v;
    weights[i] -= rate * (momentum * v + g);
  }
}

struct AdamConstants {
  float beta1, beta2, one_minus_beta1, one_minus_beta2, epsilon;
};

TERSE_WIDE_VECTORS
void AdamLoop(int64_t size, AdamConstants c, AdamFactors factors, const float* __restrict gradient,
              float* __restrict first, float* __restrict second, float* __restrict weights) {
  for (int64_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float m = c.beta1 * first[i] + c.one_minus_beta1 * g;
    const float v = c.beta2 * second[i] + c.one_minus_beta2 * (g * g);
    first[i] = m;
    second[i] = v;
    weights[i] -= factors.rate * m / (std::sqrt(v) * factors.root + c.epsilon);
  }
}

class HostOptimizer : public Optimizer {
 public:
  HostOptimizer(const OptimizerSpec& spec, int64_t size, int slots) : spec_(spec), size_(size) {
    state_.slots.resize(slots);
    for (std::vector<float>& slot : state_.slots) slot.assign(size, 0.0f);
  }

  void Begin(absl::Span<float> spare) override {
    saved_step_ = state_.step;
    if (state_.slots.empty()) return;
    saved_first_ = spare.subspan(0, size_);
    std::copy(state_.slots[0].begin(), state_.slots[0].end(), saved_first_.begin());
    saved_others_.assign(state_.slots.begin() + 1, state_.slots.end());
  }

  void Step(double rate, const float* gradient, float* weights) override {
    ++state_.step;
    Apply(rate, gradient, weights);
  }

  void Commit() override { saved_others_ = {}; }

  void Rollback() override {
    state_.step = saved_step_;
    if (state_.slots.empty()) return;
    std::copy(saved_first_.begin(), saved_first_.end(), state_.slots[0].begin());
    std::move(saved_others_.begin(), saved_others_.end(), state_.slots.begin() + 1);
    saved_others_ = {};
  }

  void MaskFirstMoment(absl::Span<const int64_t> positions) override {
    if (state_.slots.empty()) return;
    for (const int64_t position : positions) {
      if (position < size_) state_.slots[0][position] = 0.0f;
    }
  }

  const OptimizerState& Export() override { return state_; }

  absl::Status Import(OptimizerState state) override {
    TERSE_RETURN_IF_ERROR(CheckOptimizerState(state, state_.slots.size(), size_));
    state_ = std::move(state);
    return absl::OkStatus();
  }

 private:
  virtual void Apply(double rate, const float* gradient, float* weights) = 0;

 protected:
  const OptimizerSpec spec_;
  const int64_t size_;
  OptimizerState state_;

 private:
  int64_t saved_step_ = 0;
  absl::Span<float> saved_first_;                 // memory of the caller's
  std::vector<std::vector<float>> saved_others_;  // slots 1 and on
};

class HostSgd : public HostOptimizer {
 public:
  using HostOptimizer::HostOptimizer;

 private:
  void Apply(double rate, const float* gradient, float* weights) override {
    const float step = static_cast<float>(rate);
    if (state_.slots.empty()) return SgdLoop(size_, step, gradient, weights);
    const auto loop = spec_.nesterov ? NesterovLoop : MomentumLoop;
    loop(size_, step, static_cast<float>(spec_.momentum), gradient, state_.slots[0].data(), weights);
  }
};

class HostAdam : public HostOptimizer {
 public:
  using HostOptimizer::HostOptimizer;

 private:
  void Apply(double rate, const float* gradient, float* weights) override {
    const AdamConstants constants = {static_cast<float>(spec_.beta1), static_cast<float>(spec_.beta2),
                                     static_cast<float>(1 - spec_.beta1), static_cast<float>(1 - spec_.beta2),
                                     static_cast<float>(spec_.epsilon)};
    AdamLoop(size_, constants, AdamFactorsAt(spec_, rate, state_.step), gradient, state_.slots[0].data(),
             state_.slots[1].data(), weights);
  }
};

}  // namespace

absl::StatusOr<int> OptimizerSlots(const OptimizerSpec& spec) {
  if (spec.name == "sgd") return spec.momentum == 0 ? 0 : 1;
  if (spec.name == "adam" || spec.name == "adamw") return 2;
  return absl::InvalidArgumentError(
      absl::StrCat("optimizer '", spec.name, "' is not known; train.optimizer.name may be: sgd, adam, adamw"));
}

AdamFactors AdamFactorsAt(const OptimizerSpec& spec, double rate, int64_t t) {
  const double first = 1 - std::pow(spec.beta1, static_cast<double>(t));
  const double second = 1 - std::pow(spec.beta2, static_cast<double>(t));
  return {static_cast<float>(rate / first), static_cast<float>(1 / std::sqrt(second))};
}

absl::Status CheckOptimizerState(const OptimizerState& state, int slots, int64_t size) {
  bool good = state.step >= 0 && static_cast<int>(state.slots.size()) == slots;
  for (const std::vector<float>& slot : state.slots) good = good && static_cast<int64_t>(slot.size()) == size;
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the optimizer state is not one of ", slots, " vectors of ", size, " floats"));
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeHostOptimizer(const OptimizerSpec& spec, int64_t size) {
  TERSE_ASSIGN_OR_RETURN(const int slots, OptimizerSlots(spec));
  std::unique_ptr<Optimizer> optimizer;
  if (spec.name == "sgd") optimizer = std::make_unique<HostSgd>(spec, size, slots);
  if (slots == 2) optimizer = std::make_unique<HostAdam>(spec, size, slots);
  return optimizer;
}

}  // namespace terse
