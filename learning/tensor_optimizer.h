// The optimizers of optimizers.h as tensor operations, for weights that live on an accelerator. Includes LibTorch.
#ifndef TERSE_LEARNING_TENSOR_OPTIMIZER_H_
#define TERSE_LEARNING_TENSOR_OPTIMIZER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "c10/core/Device.h"
#include "learning/optimizers.h"

namespace terse {

// Same formulas as MakeHostOptimizer, whose results it matches up to rounding. Step takes pointers into `device`'s
// memory. INVALID_ARGUMENT as OptimizerSlots. Throws c10::Error; callers guard with CatchTorch (torch_edge.h).
absl::StatusOr<std::unique_ptr<Optimizer>> MakeTensorOptimizer(const OptimizerSpec& spec, int64_t size,
                                                               c10::Device device);

}  // namespace terse

#endif  // TERSE_LEARNING_TENSOR_OPTIMIZER_H_
