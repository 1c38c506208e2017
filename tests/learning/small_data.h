// Small data for tests of training, and random numbers. Includes LibTorch.
#ifndef TERSE_TESTS_LEARNING_SMALL_DATA_H_
#define TERSE_TESTS_LEARNING_SMALL_DATA_H_

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/random.h"
#include "learning/datasets/dataset.h"

namespace terse {

constexpr int64_t kFeatures = 4;
constexpr int64_t kClasses = 3;

inline std::vector<float> RandomFloats(int64_t count, uint64_t seed, double bound = 1) {
  std::vector<float> values(count);
  Random random(seed);
  for (float& value : values) value = static_cast<float>(random.Uniform(-bound, bound));
  return values;
}

inline at::Tensor RandomTensor(const std::vector<int64_t>& shape, uint64_t seed) {
  at::Tensor values = at::empty(shape);
  const std::vector<float> numbers = RandomFloats(values.numel(), seed);
  std::copy(numbers.begin(), numbers.end(), values.data_ptr<float>());
  return values;
}

// `count` examples in three clusters, which a linear model tells apart; features far from mean 0 and deviation 1.
inline Examples Clusters(int64_t count, uint64_t seed) {
  std::vector<float> features = RandomFloats(count * kFeatures, seed, 2);
  std::vector<int64_t> labels(count);
  for (int64_t i = 0; i < count; ++i) {
    labels[i] = i % kClasses;
    for (int64_t j = 0; j < kFeatures; ++j) features[i * kFeatures + j] += 5 + (j == labels[i] ? 4 : 0);
  }
  return {Column::FromFloats({kFeatures}, features), Column::FromInt64s({}, labels)};
}

inline std::shared_ptr<const Dataset> ClusterData() {
  auto dataset = std::make_shared<Dataset>();
  dataset->description = "clusters";
  dataset->classes = kClasses;
  dataset->train = Clusters(600, 1);
  dataset->test = Clusters(300, 2);
  return dataset;
}

// A text in which a symbol mostly says what the next one is.
inline Text SomeText(int64_t count, int64_t symbols, uint64_t seed) {
  Text text;
  Random random(seed);
  for (int64_t i = 0; i < count; ++i) {
    const bool follows = i > 0 && random.Below(8) > 0;
    text.symbols.push_back(static_cast<int32_t>(follows ? (text.symbols[i - 1] * 3 + 1) % symbols
                                                        : static_cast<int64_t>(random.Below(symbols))));
  }
  return text;
}

inline std::shared_ptr<const Dataset> TextData(int64_t symbols) {
  auto dataset = std::make_shared<Dataset>();
  dataset->description = "text";
  dataset->task = Task::kText;
  dataset->classes = symbols;
  dataset->train_text = SomeText(3000, symbols, 1);
  dataset->test_text = SomeText(800, symbols, 2);
  return dataset;
}

}  // namespace terse

#endif  // TERSE_TESTS_LEARNING_SMALL_DATA_H_
