// Whether a model can learn from a member's data, told from shapes and labels alone: before anything is trained, and
// with the file and the example that do not fit. No LibTorch in here. Thread-safe.
#ifndef TERSE_LEARNING_DATA_FIT_H_
#define TERSE_LEARNING_DATA_FIT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "learning/datasets/dataset.h"
#include "learning/models/model.h"

namespace terse {

// "the data (CSV rows from /data/train.csv) are text", "... have classes as targets", "... have real numbers as
// targets".
std::string DataKind(const Dataset& dataset);

// INVALID_ARGUMENT when the model takes text and the data set has examples, or the other way round, or when the
// examples have another shape than the model takes. A model that takes a row of numbers flattens what it is given.
absl::Status CheckInput(const ModelDefinition& model, const Dataset& dataset);

// For a model whose output has `outputs` numbers for each example (or symbol of a text); `model` names it in messages.
// INVALID_ARGUMENT when a label or a symbol is not below `outputs`, or when real-numbered targets are not as many. Two
// classes may be told apart by one output.
absl::Status CheckOutputs(absl::string_view model, int64_t outputs, const Dataset& dataset);

}  // namespace terse

#endif  // TERSE_LEARNING_DATA_FIT_H_
