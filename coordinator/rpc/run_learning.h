// The interface through which the coordinator uses a learning library for one run. The engine itself needs none.
#ifndef TERSE_COORDINATOR_RPC_RUN_LEARNING_H_
#define TERSE_COORDINATOR_RPC_RUN_LEARNING_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/layout.h"
#include "core/run_config.h"
#include "core/trainer.h"

namespace terse {

// The model of a run and its test set. Thread-safe but for the evaluator.
class RunLearning {
 public:
  virtual ~RunLearning() = default;

  virtual const Layout& layout() const = 0;
  // Version 0: layout().size() floats.
  virtual absl::StatusOr<std::vector<float>> InitialWeights() const = 0;
  // Lives as long as this object; called from one thread at a time. Null for a model that is not evaluated here
  // (EvaluatesModel, core/run_config.h).
  virtual Evaluator* evaluator() = 0;
  // The bytes of a TorchScript file (torch.jit.load) with these weights. UNIMPLEMENTED for a model that has none;
  // files of the weights alone (storage/model_files.h) need no help.
  virtual absl::StatusOr<std::string> ExportTorchScript(absl::Span<const float> weights) const {
    return absl::UnimplementedError(
        "the model of this run has no TorchScript; export its weights with --format state or npz");
  }
  // The symbols of a text in the order of their numbers; empty where the model reads no text.
  virtual absl::StatusOr<std::vector<std::string>> Vocabulary() const { return std::vector<std::string>(); }
};

// Makes it for a run. `module` holds the bytes of the run's TorchScript file when config.model.name is "torchscript",
// and nothing otherwise; with an empty `data_directory` the run evaluates on embedded data.
using RunLearningFactory = std::function<absl::StatusOr<std::unique_ptr<RunLearning>>(
    const RunConfig& config, const std::string& module, const std::string& data_directory)>;

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_RUN_LEARNING_H_
