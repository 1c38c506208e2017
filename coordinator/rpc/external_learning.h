// The model of a run that only the clients' own trainers know (ModelSpec kExternalModel): its layout and the weights
// that it starts from, read from a safetensors file. The coordinator runs nothing of it; a program of the user's own
// may evaluate it.
#ifndef TERSE_COORDINATOR_RPC_EXTERNAL_LEARNING_H_
#define TERSE_COORDINATOR_RPC_EXTERNAL_LEARNING_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/rpc/run_learning.h"

namespace terse {

// Makes what evaluates a run's model, which has this layout.
using EvaluatorFactory = std::function<std::unique_ptr<Evaluator>(const RunConfig& config, const Layout& layout)>;

// Its evaluator is null where `make_evaluator` is empty. INVALID_ARGUMENT for bytes that are no such file
// (storage/model_files.h), for weights that are not finite, with the tensor's name, and for limits of [limits]
// that only an evaluation can find reached.
absl::StatusOr<std::shared_ptr<RunLearning>> MakeExternalLearning(const RunConfig& config, absl::string_view file,
                                                                  const EvaluatorFactory& make_evaluator);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_EXTERNAL_LEARNING_H_
