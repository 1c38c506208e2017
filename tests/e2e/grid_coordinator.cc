// terse-coordinator for the grid trainer's layout.
#include "coordinator/rpc/server.h"
#include "tests/e2e/grid_process.h"
#include "tests/testing/grid_trainer.h"

namespace {

class GridLearning : public terse::RunLearning {
 public:
  const terse::Layout& layout() const override { return terse::EnvironmentGridLayout(); }
  absl::StatusOr<std::vector<float>> InitialWeights() const override { return terse::GridInitialWeights(layout()); }
  terse::Evaluator* evaluator() override { return &evaluator_; }
  absl::StatusOr<std::string> Export(terse::v1::ExportRequest::Format, absl::Span<const float>) const override {
    return absl::UnimplementedError("the grid model has no file format");
  }

 private:
  terse::GridEvaluator evaluator_;
};

}  // namespace

int main(int argc, char** argv) {
  terse::BelongToParent();
  terse::CoordinatorOptions options;
  if (const int code = terse::ParseCoordinatorOptions(argc, argv, &options); code >= 0) return code;
  return terse::RunCoordinator(options,
                               [](const terse::RunConfig&, const std::string&,
                                  const std::string&) -> absl::StatusOr<std::unique_ptr<terse::RunLearning>> {
                                 return std::make_unique<GridLearning>();
                               });
}
