// The models that a run may name. A new model is one file pair beside lenet5_caffe and one row in model_table.cc.
#ifndef TERSE_LEARNING_MODELS_MODEL_TABLE_H_
#define TERSE_LEARNING_MODELS_MODEL_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/layout.h"
#include "learning/models/model.h"

namespace terse {

// Names of all models, in the order of the table.
std::vector<std::string> ModelNames();

// NOT_FOUND, with the known names, when there is no such model.
absl::StatusOr<ModelDefinition> FindModel(absl::string_view name);

// The layout of a model's flat weight vector. NOT_FOUND as above.
absl::StatusOr<Layout> ModelLayout(absl::string_view name);

// The weights a run starts from: ModelLayout(name).size() floats that depend on name and seed alone and are the same
// bits on every machine. Tensor i draws from stream i of the seed. NOT_FOUND as above.
absl::StatusOr<std::vector<float>> InitialWeights(absl::string_view name, uint64_t seed);

}  // namespace terse

#endif  // TERSE_LEARNING_MODELS_MODEL_TABLE_H_
