// The model and the test set of a run in a sandboxed process: for models that are code, which a user made. Nothing of
// such a model runs in the coordinator itself. docs/SECURITY.md, "Users' models in the coordinator".
#ifndef TERSE_COORDINATOR_RPC_SANDBOXED_LEARNING_H_
#define TERSE_COORDINATOR_RPC_SANDBOXED_LEARNING_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/rpc/run_learning.h"
#include "core/run_config.h"
#include "sandbox/sandbox.h"

namespace terse {

// The process of a model; --models-memory and --models-seconds set its limits.
inline constexpr PeerRole kSandboxedModelRole = {"evaluator", "the sandboxed model", "--models", "this coordinator",
                                                 kSandboxDistrust};

// Makes the learning of a run in a process of its own, which checks the model, and keeps it there. Its evaluator starts
// the process again when it was lost, or when another thread evaluates than before, because the process dies with the
// thread that started it; an export has a process to itself, one export at a time. The facts about the model never
// change: a process that answers another layout is not believed.
//
// Statuses are those of the factory that the process serves (ServeLearning), with details (core/status_details.h), and
//   INVALID_ARGUMENT     the process ended, was out of memory or time, or was told to stop: by options.stop, or by
//                        `cancelled`, which may be empty and is asked until this returns. An evaluation then returns
//                        UNAVAILABLE, and an export FAILED_PRECONDITION. Also, from InitialWeights, that the model's
//                        own weights are not finite
//   INTERNAL             it answered what no model answers
//   FAILED_PRECONDITION  this machine cannot confine it. Landlock is essential here: without it a model could read the
//                        coordinator's key and hand it out with an export
absl::StatusOr<std::unique_ptr<RunLearning>> MakeSandboxedLearning(const SandboxOptions& options,
                                                                   const RunConfig& config, const std::string& module,
                                                                   const std::function<bool()>& cancelled = nullptr);

// Runs in the sandboxed process, after EnterSandbox: makes the learning that it is asked for with `make_learning`, and
// serves it until the coordinator is gone. Returns its exit code.
int ServeLearning(const RunLearningFactory& make_learning, const std::string& data_directory);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_SANDBOXED_LEARNING_H_
