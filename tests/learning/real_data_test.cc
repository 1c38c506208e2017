// The real files of the data sets, when TERSE_DATA names the folder that has them.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "gtest/gtest.h"
#include "learning/datasets/dataset_table.h"
#include "tests/learning/contents.h"

namespace terse {
namespace {

class RealDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("TERSE_DATA") == nullptr) GTEST_SKIP() << "TERSE_DATA is not set";
  }
  static Dataset Load(const std::string& name) {
    DataSpec spec;
    spec.name = name;
    return LoadDataset(spec, std::getenv("TERSE_DATA")).value();
  }
};

TEST_F(RealDataTest, Cifar10HasEqualClasses) {
  const Dataset dataset = Load("cifar10");
  EXPECT_EQ(dataset.train_count(), 50000);
  EXPECT_EQ(dataset.test_count(), 10000);
  EXPECT_EQ(dataset.file_starts, (std::vector<int64_t>{0, 10000, 20000, 30000, 40000}));
  std::vector<int64_t> counts(10);
  for (const double label : Numbers(dataset.train.targets)) ++counts[static_cast<int64_t>(label)];
  EXPECT_EQ(counts, std::vector<int64_t>(10, 5000));
  // The known means of the red, green and blue planes, of 255.
  const double means[] = {125.3, 123.0, 113.9};
  const auto* bytes = reinterpret_cast<const uint8_t*>(dataset.train.features.data());
  for (int channel = 0; channel < 3; ++channel) {
    double sum = 0;
    for (int64_t i = 0; i < 50000; ++i) {
      const uint8_t* plane = bytes + (i * 3 + channel) * 1024;
      sum += std::accumulate(plane, plane + 1024, 0.0);
    }
    EXPECT_NEAR(sum / (50000 * 1024), means[channel], 0.5) << channel;
  }
}

TEST_F(RealDataTest, PtbHasTenThousandWords) {
  const Dataset dataset = Load("ptb");
  EXPECT_EQ(dataset.classes, 10000);
  EXPECT_EQ(dataset.train_count(), 929589);
  EXPECT_EQ(dataset.test_count(), 82430);
  EXPECT_EQ(dataset.vocabulary[0], "the");
}

TEST_F(RealDataTest, ShakespeareHasItsCharacters) {
  const Dataset dataset = Load("shakespeare");
  EXPECT_EQ(dataset.classes, 65);
  EXPECT_EQ(dataset.train_count() + dataset.test_count(), 1115394);
  EXPECT_EQ(dataset.test_count(), 1115394 / 50);
  std::string begin;
  for (int i = 0; i < 14; ++i) begin += dataset.vocabulary[dataset.train_text.symbols[i]];
  EXPECT_EQ(begin, "First Citizen:");
}

TEST_F(RealDataTest, A9aHasItsRows) {
  const Dataset dataset = Load("a9a");
  EXPECT_GE(dataset.train_count(), 32560);
  EXPECT_EQ(dataset.test_count(), 16281);
  EXPECT_EQ(dataset.train.features.shape(), std::vector<int64_t>{123});
  EXPECT_EQ(dataset.classes, 2);
  const std::vector<double> labels = Numbers(dataset.train.targets);
  EXPECT_NEAR(std::accumulate(labels.begin(), labels.end(), 0.0) / labels.size(), 0.2408, 0.001);
  // Every feature is 0 or 1, about 14 of them in a row.
  const std::vector<float> features = Floats(dataset.train.features);
  EXPECT_TRUE(std::all_of(features.begin(), features.end(), [](float value) { return value == 0 || value == 1; }));
  EXPECT_NEAR(std::accumulate(features.begin(), features.end(), 0.0) / dataset.train_count(), 13.87, 0.1);
}

}  // namespace
}  // namespace terse
