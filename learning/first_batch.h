// A user's module meets a client's data before the client takes part. This header includes only the name of LibTorch's
// devices.
#ifndef TERSE_LEARNING_FIRST_BATCH_H_
#define TERSE_LEARNING_FIRST_BATCH_H_

#include <memory>

#include "absl/status/status.h"
#include "c10/core/Device.h"
#include "core/run_config.h"
#include "learning/blueprint.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Gives a model of its own the first training examples, without training it: a module says nothing about what it takes,
// so this is how one finds out. Uses config's normalize and unroll. INVALID_ARGUMENT, with file and example, when
// forward refuses them (LibTorch's own words are the status's details), or when the width of its output does not suit
// the targets (CheckOutputs). May throw c10::Error.
absl::Status TryTrainingData(const RunConfig& config, const Blueprint& blueprint,
                             const std::shared_ptr<const Dataset>& dataset, c10::Device device);

}  // namespace terse

#endif  // TERSE_LEARNING_FIRST_BATCH_H_
