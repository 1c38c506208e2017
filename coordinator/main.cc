// terse-coordinator: the coordinator with LibTorch's evaluator.
#include <memory>
#include <utility>

#include "coordinator/rpc/server.h"
#include "core/status.h"
#include "learning/datasets/dataset_table.h"
#include "learning/evaluator.h"
#include "learning/export.h"
#include "learning/models/model_table.h"
#include "learning/runtime.h"

namespace {

absl::StatusOr<std::unique_ptr<terse::Evaluator>> MakeTestSetEvaluator(const terse::RunConfig& config,
                                                                       const std::string& data_directory) {
  TERSE_ASSIGN_OR_RETURN(terse::Dataset dataset, terse::LoadDataset(config.data, data_directory));
  // Only the test set is evaluated on; the training set's memory goes back.
  dataset.train = terse::Examples();
  return terse::MakeEvaluator(config.model.name, std::make_shared<const terse::Dataset>(std::move(dataset)), "auto");
}

absl::StatusOr<std::string> ExportModel(const terse::RunConfig& config, terse::v1::ExportRequest::Format format,
                                        absl::Span<const float> weights) {
  if (format == terse::v1::ExportRequest::FORMAT_TORCHSCRIPT)
    return terse::ExportTorchScript(config.model.name, weights);
  if (format != terse::v1::ExportRequest::FORMAT_SAFETENSORS) {
    return absl::InvalidArgumentError("unknown export format; known are torchscript and safetensors");
  }
  TERSE_ASSIGN_OR_RETURN(const terse::Layout layout, terse::ModelLayout(config.model.name));
  return terse::ExportSafetensors(layout, weights);
}

}  // namespace

int main(int argc, char** argv) {
  terse::CoordinatorOptions options;
  if (const int code = terse::ParseCoordinatorOptions(argc, argv, &options); code >= 0) return code;
  terse::ConfigureThreads(1);
  terse::ConfigureMalloc();
  terse::LearningHooks hooks;
  hooks.layout = [](const terse::RunConfig& config) { return terse::ModelLayout(config.model.name); };
  hooks.initial_weights = [](const terse::RunConfig& config) {
    return terse::InitialWeights(config.model.name, config.seed);
  };
  hooks.evaluator = MakeTestSetEvaluator;
  hooks.exporter = ExportModel;
  return terse::RunCoordinator(options, hooks);
}
