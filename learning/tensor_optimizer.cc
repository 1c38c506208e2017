#include "learning/tensor_optimizer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "core/status.h"

namespace terse {
namespace {

class TensorOptimizer : public Optimizer {
 public:
  TensorOptimizer(const OptimizerSpec& spec, int64_t size, int slots, c10::Device device)
      : spec_(spec), size_(size), options_(at::TensorOptions().dtype(at::kFloat).device(device)) {
    for (int i = 0; i < slots; ++i) slots_.push_back(at::zeros({size}, options_));
  }

  // A copy within the device's memory is cheap beside a step's launches, and the way to the host is not.
  void Begin(absl::Span<float>) override {
    saved_step_ = step_;
    saved_slots_.clear();
    for (const at::Tensor& slot : slots_) saved_slots_.push_back(slot.clone());
  }

  void Step(double rate, const float* gradient, float* weights) override {
    const at::NoGradGuard no_grad;
    const at::Tensor g = at::from_blob(const_cast<float*>(gradient), {size_}, options_);
    at::Tensor w = at::from_blob(weights, {size_}, options_);
    ++step_;
    if (slots_.size() == 2) return Adam(rate, g, &w);
    if (slots_.empty()) {
      w.sub_(g, rate);
      return;
    }
    const at::Tensor& v = slots_[0].mul_(spec_.momentum).add_(g);
    w.sub_(spec_.nesterov ? g.add(v, spec_.momentum) : v, rate);
  }

  void Commit() override { saved_slots_.clear(); }

  void Rollback() override {
    step_ = saved_step_;
    slots_ = std::exchange(saved_slots_, {});
  }

  void MaskFirstMoment(absl::Span<const int64_t> positions) override {
    if (slots_.empty()) return;
    std::vector<int64_t> inside;
    for (const int64_t position : positions) {
      if (position < size_) inside.push_back(position);
    }
    slots_[0].index_fill_(0, at::tensor(inside, at::kLong).to(options_.device()), 0.0);
  }

  const OptimizerState& Export() override {
    exported_.step = step_;
    exported_.slots.clear();
    for (const at::Tensor& slot : slots_) {
      const at::Tensor host = slot.cpu();
      exported_.slots.emplace_back(host.data_ptr<float>(), host.data_ptr<float>() + size_);
    }
    return exported_;
  }

  absl::Status Import(OptimizerState state) override {
    TERSE_RETURN_IF_ERROR(CheckOptimizerState(state, slots_.size(), size_));
    step_ = state.step;
    for (size_t i = 0; i < slots_.size(); ++i) slots_[i].copy_(at::from_blob(state.slots[i].data(), {size_}));
    return absl::OkStatus();
  }

 private:
  void Adam(double rate, const at::Tensor& g, at::Tensor* w) {
    const AdamFactors factors = AdamFactorsAt(spec_, rate, step_);
    at::Tensor& m = slots_[0].mul_(spec_.beta1).add_(g, 1 - spec_.beta1);
    at::Tensor& v = slots_[1].mul_(spec_.beta2).addcmul_(g, g, 1 - spec_.beta2);
    w->addcdiv_(m, v.sqrt().mul_(factors.root).add_(spec_.epsilon), -factors.rate);
  }

  const OptimizerSpec spec_;
  const int64_t size_;
  const at::TensorOptions options_;
  int64_t step_ = 0;
  std::vector<at::Tensor> slots_;
  int64_t saved_step_ = 0;
  std::vector<at::Tensor> saved_slots_;
  OptimizerState exported_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeTensorOptimizer(const OptimizerSpec& spec, int64_t size,
                                                               c10::Device device) {
  TERSE_ASSIGN_OR_RETURN(const int slots, OptimizerSlots(spec));
  return std::make_unique<TensorOptimizer>(spec, size, slots, device);
}

}  // namespace terse
