// L2-regularised logistic regression on synthetic examples that look like a9a's (a few binary features of many), in
// double: gradients whose optimum can be computed, for tests of algorithms without LibTorch.
#ifndef TERSE_TESTS_COORDINATOR_SYNTHETIC_LOGISTIC_H_
#define TERSE_TESTS_COORDINATOR_SYNTHETIC_LOGISTIC_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/layout.h"
#include "core/random.h"

namespace terse {

class SyntheticLogistic {
 public:
  static constexpr int64_t kFeatures = 40, kOn = 6, kExamples = 400;
  static constexpr double kL2 = 1e-2;

  SyntheticLogistic() {
    Random random(17);
    std::vector<double> truth(kFeatures);
    for (double& weight : truth) weight = random.Uniform(-2, 2);
    for (int64_t i = 0; i < kExamples; ++i) {
      std::vector<int64_t> on;
      double logit = 0;
      for (int64_t k = 0; k < kOn; ++k) {
        on.push_back(static_cast<int64_t>(random.Below(kFeatures)));
        logit += truth[on.back()];
      }
      examples_.push_back(on);
      labels_.push_back(random.Uniform() < 1 / (1 + std::exp(-logit)) ? 1.0 : 0.0);
    }
  }

  static Layout MakeLayout() { return *Layout::Create({{"linear.weight", {1, kFeatures}}, {"linear.bias", {1}}}); }

  // Mean over the examples begin, begin + stride, ...: added to `gradient`, times `scale`.
  void AddGradient(absl::Span<const float> weights, int64_t begin, int64_t stride, double scale,
                   std::vector<double>* gradient) const {
    double count = 0;
    for (int64_t i = begin; i < kExamples; i += stride) ++count;
    for (int64_t i = begin; i < kExamples; i += stride) {
      const double slope = scale / count * (1 / (1 + std::exp(-Logit(weights, i))) - labels_[i]);
      for (const int64_t feature : examples_[i]) (*gradient)[feature] += slope;
      (*gradient)[kFeatures] += slope;
    }
    for (int64_t k = 0; k < kFeatures; ++k) (*gradient)[k] += scale * kL2 * weights[k];
  }

  // P(x), with l1 * ||w||_1.
  double Objective(absl::Span<const float> weights, double l1) const {
    double loss = 0, penalty = 0;
    for (int64_t i = 0; i < kExamples; ++i) {
      const double logit = Logit(weights, i);
      loss += std::log1p(std::exp(logit)) - labels_[i] * logit;
    }
    for (int64_t k = 0; k < kFeatures; ++k) {
      penalty += 0.5 * kL2 * weights[k] * weights[k] + l1 * std::abs(weights[k]);
    }
    return loss / kExamples + penalty;
  }

 private:
  double Logit(absl::Span<const float> weights, int64_t i) const {
    double logit = weights[kFeatures];
    for (const int64_t feature : examples_[i]) logit += weights[feature];
    return logit;
  }

  std::vector<std::vector<int64_t>> examples_;
  std::vector<double> labels_;
};

}  // namespace terse

#endif  // TERSE_TESTS_COORDINATOR_SYNTHETIC_LOGISTIC_H_
