// Accuracy and loss of a model on a test set. This header does not include LibTorch.
#ifndef TERSE_LEARNING_EVALUATOR_H_
#define TERSE_LEARNING_EVALUATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/trainer.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Evaluates `model` on dataset->test. NOT_FOUND for an unknown model; INVALID_ARGUMENT for an unknown device, an empty
// test set or images that do not fit; FAILED_PRECONDITION for "cuda" where there is none; INTERNAL when LibTorch fails.
// Evaluate returns INVALID_ARGUMENT for weights of the wrong length and INTERNAL when LibTorch fails.
absl::StatusOr<std::unique_ptr<Evaluator>> MakeEvaluator(absl::string_view model,
                                                         std::shared_ptr<const Dataset> dataset,
                                                         absl::string_view device);

}  // namespace terse

#endif  // TERSE_LEARNING_EVALUATOR_H_
