// The models that a run may name. A new model is one file pair beside lenet5_caffe and one row in model_table.cc.
#ifndef TERSE_LEARNING_MODELS_MODEL_TABLE_H_
#define TERSE_LEARNING_MODELS_MODEL_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/layout.h"
#include "core/run_config.h"
#include "learning/models/model.h"

namespace terse {

// Names of all models, in the order of the table.
std::vector<std::string> ModelNames();

// NOT_FOUND, with the known names, when there is no such model.
absl::StatusOr<ModelDefinition> FindModel(const ModelSpec& spec);

// The layout of a model's flat weight vector: parameters, then buffers unless they stay with each client
// (with_buffers). NOT_FOUND as above.
absl::StatusOr<Layout> ModelLayout(const ModelSpec& spec, bool with_buffers = true);
absl::StatusOr<Layout> LayoutOf(const ModelDefinition& model, bool with_buffers = true);

// The weights that a model starts from: one float an element of LayoutOf(model, with_buffers), which depend on the
// definition and the seed alone and are the same bits on every machine. Tensor i draws from stream i of the seed.
std::vector<float> StartWeights(const ModelDefinition& model, uint64_t seed, bool with_buffers = true);
// The same weights for a row of the table. NOT_FOUND as above.
absl::StatusOr<std::vector<float>> InitialWeights(const ModelSpec& spec, uint64_t seed, bool with_buffers = true);

}  // namespace terse

#endif  // TERSE_LEARNING_MODELS_MODEL_TABLE_H_
