// The gradients that clients compute in runs with epochs (core/epochs.h): Yu, Wu, Huang, "Double Quantization for
// Communication-Efficient Distributed Optimization" (NeurIPS 2019), Algorithm 1, steps 4 and 10. Includes LibTorch;
// used inside learning/ only.
//
//   full gradient   mean over the client's examples of grad f_i(w), plus weight_decay * w
//   step            grad f_B(w) - grad f_B(x~), B a mini-batch, both with weight decay
//
// The loss is that of the model in evaluation mode, because SVRG needs a fixed sum over examples: nothing drops out,
// and batch normalisation uses its running statistics. The L1 term is the coordinator's, by its proximal step.
#ifndef TERSE_LEARNING_GRADIENT_TASKS_H_
#define TERSE_LEARNING_GRADIENT_TASKS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/layout.h"
#include "core/run_config.h"
#include "core/trainer.h"
#include "learning/batches.h"
#include "learning/datasets/dataset.h"
#include "learning/gradient_terms.h"
#include "learning/loss_table.h"
#include "learning/script_model.h"

namespace terse {

// Not thread-safe. Methods may throw c10::Error. Weights, snapshot and gradient have layout.size() elements; the
// gradient has unspecified ones after an error. FAILED_PRECONDITION when loss or gradient is not finite.
class GradientTasks {
 public:
  // The examples `indices` of dataset->train. `layout` is of parameters alone.
  GradientTasks(const RunConfig& config, const Layout& layout, std::shared_ptr<const Dataset> dataset,
                std::vector<uint32_t> indices, c10::Device device);

  // Computes the full gradient over slices of the examples, one after the other; CANCELLED when `keep_going` says so
  // before one of them.
  absl::StatusOr<TrainResult> Full(ScriptModel* model, const Loss& loss, absl::Span<const float> weights,
                                   const std::function<bool()>& keep_going, absl::Span<float> gradient) const;

  absl::StatusOr<TrainResult> Step(ScriptModel* model, const Loss& loss, const Batch& batch, const GradientPlan& plan,
                                   absl::Span<float> gradient) const;

 private:
  const std::shared_ptr<const Dataset> dataset_;
  const std::vector<uint32_t> indices_;
  const std::string normalize_;
  const c10::Device device_;
  const GradientTerms terms_;
};

}  // namespace terse

#endif  // TERSE_LEARNING_GRADIENT_TASKS_H_
