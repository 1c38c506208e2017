#include "learning/evaluator.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "tests/learning/training_fixture.h"

namespace terse {
namespace {

TEST(EvaluatorTest, AConstantModelScoresItsClass) {
  const Layout layout = ModelLayout({"lenet5_caffe"}).value();
  // All weights zero but the last layer's biases: the logits are the biases, whatever the image.
  std::vector<float> weights(layout.size(), 0.0f);
  weights[layout.tensors()[7].offset + 4] = 2.0f;
  const auto evaluator = EvaluatorOn(SmallGlyphs(), AdamRun(16)).value();
  const Evaluation evaluation = evaluator->Evaluate(weights).value();
  const Column& labels = SmallGlyphs()->test.targets;
  const double fours =
      static_cast<double>(std::count(labels.data(), labels.data() + labels.count(), 4)) / labels.count();
  EXPECT_DOUBLE_EQ(evaluation.accuracy, fours);
  EXPECT_NEAR(evaluation.loss, std::log(std::exp(2.0) + 9) - 2 * fours, 1e-5);
}

TEST(EvaluatorTest, TheLastBatchMayBeShort) {
  auto dataset = std::make_shared<Dataset>();
  *dataset = GlyphDigits({1, 501, 28});
  std::vector<uint8_t> labels(501, 0);
  labels[500] = 1;
  dataset->test.targets = Column::FromBytes({}, labels);
  const std::vector<float> zeros(431080, 0.0f);
  const auto evaluator = EvaluatorOn(dataset, AdamRun(16)).value();
  const Evaluation evaluation = evaluator->Evaluate(zeros).value();
  EXPECT_DOUBLE_EQ(evaluation.accuracy, 500.0 / 501);
  EXPECT_NEAR(evaluation.loss, std::log(10.0), 1e-5);
}

TEST(EvaluatorTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(EvaluatorOn(std::make_shared<Dataset>(), AdamRun(16)).status().code(), absl::StatusCode::kInvalidArgument);
  const auto evaluator = EvaluatorOn(SmallGlyphs(), AdamRun(16)).value();
  EXPECT_EQ(evaluator->Evaluate({1.0f}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace terse
