// The terms that a run adds to the gradient of the loss before the optimizer sees it. Includes LibTorch; used inside
// learning/ only.
#ifndef TERSE_LEARNING_GRADIENT_TERMS_H_
#define TERSE_LEARNING_GRADIENT_TERMS_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// Adds these terms in this order, each only where it is set:
//   g += weight_decay * w         L2 regularisation, of tensors with two dimensions or more; not with adamw
//   g += l1 * sign(w)             L1 regularisation, of the same tensors
//   g += proximal * (w - W_0)     FedProx (Li et al. 2018, equation 2), of all parameters
//   g *= clip_norm / ||g||        when the L2 norm of all parameters' gradients is larger than clip_norm
// With adamw the weight decay is not a term of the gradient: Decay subtracts it from the weights before each step,
//   w -= rate * weight_decay * w  Loshchilov and Hutter 2019, Algorithm 2, of the same tensors
// Immutable; thread-safe.
class GradientTerms {
 public:
  GradientTerms(const TrainSpec& train, const Layout& layout);

  bool needs_start() const { return proximal_ > 0; }
  // `start` is W_0, needed with needs_start(). All are float32 [layout.parameters()] on one device. May throw
  // c10::Error.
  void Apply(const at::Tensor& start, const at::Tensor& weights, at::Tensor* gradient) const;
  // Decays the weights, of the same form, for a step with this learning rate. May throw c10::Error.
  void Decay(double rate, const at::Tensor& weights) const;

 private:
  const double weight_decay_;     // of the gradient
  const double decoupled_decay_;  // of the weights
  const double l1_;
  const double proximal_;
  const double clip_norm_;
  const std::vector<Layout::Range> decayed_;
};

}  // namespace terse

#endif  // TERSE_LEARNING_GRADIENT_TERMS_H_
