// What the coordinator needs of a learning library for one run. The engine itself needs none.
#ifndef TERSE_COORDINATOR_RPC_RUN_LEARNING_H_
#define TERSE_COORDINATOR_RPC_RUN_LEARNING_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/layout.h"
#include "core/run_config.h"
#include "core/trainer.h"
#include "terse/v1/admin.pb.h"

namespace terse {

// The model of a run and its test set. Thread-safe but for the evaluator.
class RunLearning {
 public:
  virtual ~RunLearning() = default;

  virtual const Layout& layout() const = 0;
  // Version 0: layout().size() floats.
  virtual absl::StatusOr<std::vector<float>> InitialWeights() const = 0;
  virtual Evaluator* evaluator() = 0;
  // The bytes of a model file that other programs open.
  virtual absl::StatusOr<std::string> Export(v1::ExportRequest::Format format,
                                             absl::Span<const float> weights) const = 0;
};

// Makes it for a run. `module` holds the bytes of the run's TorchScript file when config.model.name is "torchscript",
// and nothing otherwise; with an empty `data_directory` the run evaluates on embedded data.
using RunLearningFactory = std::function<absl::StatusOr<std::unique_ptr<RunLearning>>(
    const RunConfig& config, const std::string& module, const std::string& data_directory)>;

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_RUN_LEARNING_H_
