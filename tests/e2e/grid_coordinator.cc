// terse-coordinator for the grid trainer's layout.
#include "coordinator/rpc/server.h"
#include "tests/e2e/grid_process.h"
#include "tests/testing/grid_trainer.h"

int main(int argc, char** argv) {
  terse::BelongToParent();
  terse::CoordinatorOptions options;
  if (const int code = terse::ParseCoordinatorOptions(argc, argv, &options); code >= 0) return code;
  terse::LearningHooks hooks;
  hooks.layout = [](const terse::RunConfig&) -> absl::StatusOr<terse::Layout> {
    return terse::EnvironmentGridLayout();
  };
  hooks.initial_weights = [](const terse::RunConfig&) -> absl::StatusOr<std::vector<float>> {
    return terse::GridInitialWeights(terse::EnvironmentGridLayout());
  };
  hooks.evaluator = [](const terse::RunConfig&,
                       const std::string&) -> absl::StatusOr<std::unique_ptr<terse::Evaluator>> {
    return std::make_unique<terse::GridEvaluator>();
  };
  hooks.exporter = [](const terse::RunConfig&, terse::v1::ExportRequest::Format,
                      absl::Span<const float>) -> absl::StatusOr<std::string> {
    return absl::UnimplementedError("the grid model has no file format");
  };
  return terse::RunCoordinator(options, hooks);
}
