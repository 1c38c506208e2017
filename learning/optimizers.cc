#include "learning/optimizers.h"

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

// The state is read from `from` and written to `to`, which may be the same memory: element i depends on element i
// alone.
TERSE_WIDE_VECTORS
void MomentumLoop(int64_t size, float rate, float momentum, const float* __restrict gradient, const float* from,
                  float* to, float* __restrict weights) {
#pragma GCC ivdep
  for (int64_t i = 0; i < size; ++i) {
    const float v = momentum * from[i] + gradient[i];
    to[i] = v;
    weights[i] -= rate * v;
  }
}

TERSE_WIDE_VECTORS
void NesterovLoop(int64_t size, float rate, float momentum, const float* __restrict gradient, const float* from,
                  float* to, float* __restrict weights) {
#pragma GCC ivdep
  for (int64_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float v = momentum * from[i] + g;
    to[i] = v;
    weights[i] -= rate * (momentum * v + g);
  }
}

struct AdamConstants {
  float beta1, beta2, one_minus_beta1, one_minus_beta2, epsilon;
};

TERSE_WIDE_VECTORS
void AdamLoop(int64_t size, AdamConstants c, AdamFactors factors, const float* __restrict gradient, const float* from_m,
              const float* from_v, float* to_m, float* to_v, float* __restrict weights) {
#pragma GCC ivdep
  for (int64_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float m = c.beta1 * from_m[i] + c.one_minus_beta1 * g;
    const float v = c.beta2 * from_v[i] + c.one_minus_beta2 * (g * g);
    to_m[i] = m;
    to_v[i] = v;
    weights[i] -= factors.rate * m / (std::sqrt(v) * factors.root + c.epsilon);
  }
}

class HostOptimizer : public Optimizer {
 public:
  HostOptimizer(const OptimizerSpec& spec, int64_t size, int slots) : spec_(spec), size_(size) {
    committed_.slots.assign(slots, std::vector<float>(size, 0.0f));
    working_ = committed_;
  }

  void Begin() override {
    from_ = &committed_;
    working_.step = committed_.step;
  }

  void Step(double rate, const float* gradient, float* weights) override {
    ++working_.step;
    Apply(*from_, rate, gradient, weights);
    from_ = &working_;
  }

  void Commit() override {
    if (from_ == &working_) std::swap(committed_, working_);
    from_ = &committed_;
  }

  void Rollback() override { from_ = &committed_; }

  void MaskFirstMoment(absl::Span<const uint32_t> positions) override {
    if (committed_.slots.empty()) return;
    for (const uint32_t position : positions) {
      if (position < size_) committed_.slots[0][position] = 0.0f;
    }
  }

  OptimizerState Export() const override { return committed_; }

  absl::Status Import(OptimizerState state) override {
    TERSE_RETURN_IF_ERROR(CheckOptimizerState(state, committed_.slots.size(), size_));
    committed_ = std::move(state);
    return absl::OkStatus();
  }

 private:
  virtual void Apply(const OptimizerState& from, double rate, const float* gradient, float* weights) = 0;

 protected:
  const OptimizerSpec spec_;
  const int64_t size_;
  OptimizerState working_;

 private:
  OptimizerState committed_;
  const OptimizerState* from_ = &committed_;  // where the next step reads its state
};

class HostSgd : public HostOptimizer {
 public:
  using HostOptimizer::HostOptimizer;

 private:
  void Apply(const OptimizerState& from, double rate, const float* gradient, float* weights) override {
    const float step = static_cast<float>(rate);
    if (from.slots.empty()) return SgdLoop(size_, step, gradient, weights);
    const auto loop = spec_.nesterov ? NesterovLoop : MomentumLoop;
    loop(size_, step, static_cast<float>(spec_.momentum), gradient, from.slots[0].data(), working_.slots[0].data(),
         weights);
  }
};

class HostAdam : public HostOptimizer {
 public:
  using HostOptimizer::HostOptimizer;

 private:
  void Apply(const OptimizerState& from, double rate, const float* gradient, float* weights) override {
    const AdamConstants constants = {static_cast<float>(spec_.beta1), static_cast<float>(spec_.beta2),
                                     static_cast<float>(1 - spec_.beta1), static_cast<float>(1 - spec_.beta2),
                                     static_cast<float>(spec_.epsilon)};
    AdamLoop(size_, constants, AdamFactorsAt(spec_, rate, working_.step), gradient, from.slots[0].data(),
             from.slots[1].data(), working_.slots[0].data(), working_.slots[1].data(), weights);
  }
};

}  // namespace

absl::StatusOr<int> OptimizerSlots(const OptimizerSpec& spec) {
  if (spec.name == "sgd") return spec.momentum == 0 ? 0 : 1;
  if (spec.name == "adam") return 2;
  return absl::InvalidArgumentError(
      absl::StrCat("optimizer '", spec.name, "' is not known; train.optimizer.name may be: sgd, adam"));
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
  if (spec.name == "adam") optimizer = std::make_unique<HostAdam>(spec, size, slots);
  return optimizer;
}

}  // namespace terse
