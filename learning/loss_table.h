// The losses that a run may train with, and how an output is scored. Includes LibTorch; used inside learning/ only.
#ifndef TERSE_LEARNING_LOSS_TABLE_H_
#define TERSE_LEARNING_LOSS_TABLE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "core/trainer.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Sums over predictions, from which Evaluation's means follow.
struct Score {
  double loss = 0;
  int64_t correct = 0;  // the largest output is the class, or the logit has the target's sign
  // The class is among the five largest outputs. nullopt where there are no more than five, or no classes.
  absl::optional<int64_t> top5 = {};
  int64_t count = 0;  // predictions: examples, logits of bce_with_logits, or symbols of a text
};

// A row of the table. Targets are int64 [batch] for classes, float of the output's shape for values, and int64
// [batch, time] for texts, whose outputs are [batch, time, classes].
struct Loss {
  const char* name;
  Task task;
  // The loss that training minimises: a scalar.
  at::Tensor (*train)(const at::Tensor& output, const at::Tensor& target);
  // Sum of the loss over all predictions: a scalar.
  at::Tensor (*sum)(const at::Tensor& output, const at::Tensor& target);
  // Whether each prediction is right: a Boolean tensor; nullptr where nothing is right or wrong.
  at::Tensor (*right)(const at::Tensor& output, const at::Tensor& target);
};

// The losses, in the order of the table:
//   cross_entropy           of logits, mean over the batch
//   nll                     of log-probabilities, mean over the batch
//   bce_with_logits         binary cross-entropy of logits, targets 0 and 1 of the same shape, mean
//   mse                     squared error, mean over batch and values
//   lm_cross_entropy        of the next symbol, mean over batch and time
//   sequence_cross_entropy  of the next symbol, summed over time, mean over the batch: what TensorFlow's Penn Treebank
//                           tutorial minimises
//
// Returns the row of that name, or for "auto" the first that fits a model with `outputs` (0: not known).
// INVALID_ARGUMENT for an unknown name, or one that does not fit: two classes told apart by one output take
// bce_with_logits, others none of the values' losses. Rows live for the whole program.
absl::StatusOr<const Loss*> FindLoss(absl::string_view name, Task task, int64_t classes, int64_t outputs);

// Targets as the loss takes them.
at::Tensor FitTargets(const Loss& loss, const at::Tensor& output, const at::Tensor& target);

// Adds a batch to `score`. May throw c10::Error.
void AddScore(const Loss& loss, const at::Tensor& output, const at::Tensor& target, Score* score);

// Means over the predictions; without any, a loss of 0 and nothing else.
Evaluation ToEvaluation(const Loss& loss, const Score& score);

}  // namespace terse

#endif  // TERSE_LEARNING_LOSS_TABLE_H_
