// The model of a run that only the clients' own trainers know (ModelSpec kExternalModel): its layout and the weights
// that it starts from, read from a safetensors file. The coordinator runs nothing of it, and evaluates nothing.
#ifndef TERSE_COORDINATOR_RPC_EXTERNAL_LEARNING_H_
#define TERSE_COORDINATOR_RPC_EXTERNAL_LEARNING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/rpc/run_learning.h"

namespace terse {

// Its evaluator is null. INVALID_ARGUMENT for bytes that are no such file (storage/model_files.h), and for weights that
// are not finite, with the tensor's name.
absl::StatusOr<std::shared_ptr<RunLearning>> MakeExternalLearning(absl::string_view file);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_EXTERNAL_LEARNING_H_
