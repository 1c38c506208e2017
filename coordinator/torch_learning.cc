#include "coordinator/torch_learning.h"

#include <utility>

#include "core/status.h"
#include "learning/blueprint.h"
#include "learning/datasets/dataset_table.h"
#include "learning/evaluator.h"
#include "learning/export.h"

namespace terse {
namespace {

class TorchLearning : public RunLearning {
 public:
  TorchLearning(uint64_t seed, std::shared_ptr<const Blueprint> blueprint, std::shared_ptr<const Dataset> dataset,
                std::unique_ptr<Evaluator> evaluator)
      : seed_(seed), blueprint_(std::move(blueprint)), dataset_(std::move(dataset)), evaluator_(std::move(evaluator)) {}

  const Layout& layout() const override { return blueprint_->layout(); }
  absl::StatusOr<std::vector<float>> InitialWeights() const override { return blueprint_->StartWeights(seed_); }
  Evaluator* evaluator() override { return evaluator_.get(); }

  absl::StatusOr<std::string> ExportTorchScript(absl::Span<const float> weights) const override {
    return terse::ExportTorchScript(*blueprint_, weights);
  }
  absl::StatusOr<std::vector<std::string>> Vocabulary() const override { return dataset_->vocabulary; }

 private:
  const uint64_t seed_;
  const std::shared_ptr<const Blueprint> blueprint_;
  const std::shared_ptr<const Dataset> dataset_;
  const std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace

RunLearningFactory TorchRunLearning(std::string device) {
  return [device = std::move(device)](
             const RunConfig& config, const std::string& module,
             const std::string& data_directory) -> absl::StatusOr<std::unique_ptr<RunLearning>> {
    TERSE_ASSIGN_OR_RETURN(std::shared_ptr<const Blueprint> blueprint, MakeBlueprint(config.model, module));
    TERSE_ASSIGN_OR_RETURN(Dataset dataset, LoadDataset(config.data, data_directory));
    if (config.model.buffers != "local") {
      dataset.train = Examples();
      dataset.train_text = Text();
    }
    auto shared = std::make_shared<const Dataset>(std::move(dataset));
    TERSE_ASSIGN_OR_RETURN(std::unique_ptr<Evaluator> evaluator, MakeEvaluator(config, blueprint, shared, device));
    return std::make_unique<TorchLearning>(config.seed, std::move(blueprint), std::move(shared), std::move(evaluator));
  };
}

}  // namespace terse
