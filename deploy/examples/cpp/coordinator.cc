// The coordinator of that model: it knows the layout, the first weights and how good weights are, not the training.
#include <memory>
#include <string>

#include "coordinator/plugin.h"
#include "logistic.h"

namespace {

class LogisticLearning : public terse::RunLearning, private terse::Evaluator {
 public:
  explicit LogisticLearning(const terse::RunConfig& config) : test_(DrawPoints(config.seed, 1000)) {}

  const terse::Layout& layout() const override { return layout_; }
  absl::StatusOr<std::vector<float>> InitialWeights() const override { return std::vector<float>(layout_.size()); }
  terse::Evaluator* evaluator() override { return this; }

 private:
  absl::StatusOr<terse::Evaluation> Evaluate(absl::Span<const float> weights) override {
    double right = 0, loss = 0;
    for (const Point& point : test_) {
      const float probability = Predict(weights, point);
      right += (probability > 0.5f) == (point.label > 0);
      loss += LossOf(probability, point.label);
    }
    return terse::Evaluation{right / test_.size(), loss / test_.size()};
  }

  const terse::Layout layout_ = LogisticLayout();
  const std::vector<Point> test_;
};

}  // namespace

int main(int argc, char** argv) {
  terse::CoordinatorOptions options;
  if (const int code = terse::ParseCoordinatorOptions(argc, argv, &options); code >= 0) return code;
  return terse::RunCoordinator(options, [](const terse::RunConfig& config, const std::string&, const std::string&) {
    return std::make_unique<LogisticLearning>(config);
  });
}
