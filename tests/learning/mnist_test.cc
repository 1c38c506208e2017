// Trains on the real MNIST when TERSE_DATA names a folder with mnist/ in it.
#include "learning/datasets/mnist.h"

#include <cstdlib>
#include <numeric>

#include "gtest/gtest.h"
#include "learning/evaluator.h"
#include "tests/learning/training_fixture.h"

namespace terse {
namespace {

TEST(MnistTest, LoadsAndLearns) {
  const char* folder = std::getenv("TERSE_DATA");
  if (folder == nullptr) GTEST_SKIP() << "TERSE_DATA is not set";
  const auto dataset = std::make_shared<const Dataset>(LoadMnist(folder).value());
  EXPECT_EQ(dataset->train.count(), 60000);
  EXPECT_EQ(dataset->test.count(), 10000);
  // MNIST's known mean pixel: 33.318 of 255.
  const auto* images = reinterpret_cast<const uint8_t*>(dataset->train.features.data());
  const int64_t pixels = 60000 * 784;
  EXPECT_NEAR(std::accumulate(images, images + pixels, 0.0) / pixels, 33.318, 0.001);

  ConfigureThreads(1);
  const auto trainer = TrainerOn(dataset, AdamRun(128), {0, 4}).value();
  std::vector<float> weights = InitialWeights({"lenet5_caffe"}, 1).value();
  TrainInto(trainer.get(), 150, &weights);
  const auto evaluator = EvaluatorOn(dataset, AdamRun(16)).value();
  EXPECT_GT(evaluator->Evaluate(weights).value().accuracy.value(), 0.95);
}

}  // namespace
}  // namespace terse
