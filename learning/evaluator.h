// Scores of a model on a test set. This header does not include LibTorch.
#ifndef TERSE_LEARNING_EVALUATOR_H_
#define TERSE_LEARNING_EVALUATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/run_config.h"
#include "core/trainer.h"
#include "learning/blueprint.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Evaluates on the data set's test examples or test text with the run's loss and normalisation. Buffers that the
// clients keep to themselves (model.buffers = "local") are estimated before each evaluation, from training examples
// where the data set has some; with texts they keep the values that the model starts with. INVALID_ARGUMENT for an
// unknown device, an empty test set, or a model or loss that does not fit, a user's module that throws or has no
// gradient among them, or a limits.accuracy where the loss has none; FAILED_PRECONDITION for "cuda" where there is
// none; INTERNAL when LibTorch fails. Evaluate returns INVALID_ARGUMENT for weights of the wrong length and INTERNAL
// when LibTorch fails.
absl::StatusOr<std::unique_ptr<Evaluator>> MakeEvaluator(const RunConfig& config,
                                                         std::shared_ptr<const Blueprint> blueprint,
                                                         std::shared_ptr<const Dataset> dataset,
                                                         absl::string_view device);

}  // namespace terse

#endif  // TERSE_LEARNING_EVALUATOR_H_
