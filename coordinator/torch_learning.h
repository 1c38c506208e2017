// RunLearning with LibTorch. This header does not include LibTorch.
#ifndef TERSE_COORDINATOR_TORCH_LEARNING_H_
#define TERSE_COORDINATOR_TORCH_LEARNING_H_

#include <memory>
#include <string>

#include "coordinator/rpc/run_learning.h"

namespace terse {

// The factory of terse-coordinator: evaluates on `device` ("auto", "cpu" or "cuda"). Only the test set of the data
// stays in memory, unless buffers that the clients keep must be estimated from training examples. Statuses of
// LoadDataset, MakeBlueprint and MakeEvaluator.
RunLearningFactory TorchRunLearning(std::string device = "auto");

}  // namespace terse

#endif  // TERSE_COORDINATOR_TORCH_LEARNING_H_
