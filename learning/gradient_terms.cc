#include "learning/gradient_terms.h"

#include <ATen/ATen.h>

namespace terse {

namespace {

bool DecaysWeights(const OptimizerSpec& optimizer) { return optimizer.name == "adamw"; }

}  // namespace

GradientTerms::GradientTerms(const TrainSpec& train, const Layout& layout)
    : weight_decay_(DecaysWeights(train.optimizer) ? 0 : train.optimizer.weight_decay),
      decoupled_decay_(DecaysWeights(train.optimizer) ? train.optimizer.weight_decay : 0),
      l1_(train.optimizer.l1),
      proximal_(train.proximal),
      clip_norm_(train.optimizer.clip_norm),
      decayed_(layout.WeightRanges()) {}

void GradientTerms::Apply(const at::Tensor& start, const at::Tensor& weights, at::Tensor* gradient) const {
  if (weight_decay_ > 0 || l1_ > 0) {
    for (const Layout::Range& range : decayed_) {
      at::Tensor g = gradient->narrow(0, range.begin, range.size);
      const at::Tensor w = weights.narrow(0, range.begin, range.size);
      if (weight_decay_ > 0) g.add_(w, weight_decay_);
      if (l1_ > 0) g.add_(w.sign(), l1_);
    }
  }
  if (proximal_ > 0) gradient->add_(weights - start, proximal_);
  if (clip_norm_ <= 0) return;
  const double norm = gradient->norm().item<double>();
  if (norm > clip_norm_) gradient->mul_(clip_norm_ / norm);
}

void GradientTerms::Decay(double rate, const at::Tensor& weights) const {
  if (decoupled_decay_ == 0) return;
  for (const Layout::Range& range : decayed_) {
    weights.narrow(0, range.begin, range.size).mul_(1 - rate * decoupled_decay_);
  }
}

}  // namespace terse
