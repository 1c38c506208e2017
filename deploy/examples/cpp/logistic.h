// The part that client and coordinator of this example share: logistic regression, and points that it can tell apart.
#ifndef TERSE_EXAMPLE_LOGISTIC_H_
#define TERSE_EXAMPLE_LOGISTIC_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "core/layout.h"

constexpr int kFeatures = 50;

struct Point {
  std::array<float, kFeatures> x;
  float label;  // 0 or 1
};

// The order of the flat weight vector.
inline terse::Layout LogisticLayout() {
  return terse::Layout::Create({{"weight", {1, kFeatures}}, {"bias", {1}}}).value();
}

// The probability of label 1.
inline float Predict(absl::Span<const float> weights, const Point& point) {
  float logit = weights[kFeatures];
  for (int i = 0; i < kFeatures; ++i) logit += weights[i] * point.x[i];
  return 1 / (1 + std::exp(-logit));
}

inline float LossOf(float probability, float label) {
  return -std::log(std::max(label > 0 ? probability : 1 - probability, 1e-7f));
}

// Points on both sides of a plane, which is the same for every seed.
inline std::vector<Point> DrawPoints(uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<Point> points(count);
  for (Point& point : points) {
    float side = 0;
    for (int i = 0; i < kFeatures; ++i) {
      point.x[i] = normal(random);
      side += point.x[i] * (i % 7 - 3);
    }
    point.label = side > 0 ? 1 : 0;
  }
  return points;
}

#endif  // TERSE_EXAMPLE_LOGISTIC_H_
