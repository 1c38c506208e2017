// Holds the model's loss and gradient against a network written out in plain double-precision loops.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random.h"
#include "gtest/gtest.h"
#include "tests/learning/training_fixture.h"

namespace terse {
namespace {

constexpr int kBatch = 4;

using Values = std::vector<double>;

// x [channels, side, side] -> [maps, side - 4, side - 4]
Values Convolve(const Values& x, int channels, int side, const double* weight, const double* bias, int maps) {
  const int out = side - 4;
  Values y(maps * out * out);
  for (int m = 0; m < maps; ++m)
    for (int r = 0; r < out; ++r)
      for (int c = 0; c < out; ++c) {
        double sum = bias[m];
        for (int k = 0; k < channels; ++k)
          for (int i = 0; i < 5; ++i)
            for (int j = 0; j < 5; ++j)
              sum += weight[((m * channels + k) * 5 + i) * 5 + j] * x[(k * side + r + i) * side + c + j];
        y[(m * out + r) * out + c] = sum;
      }
  return y;
}

Values Pool(const Values& x, int maps, int side) {
  const int out = side / 2;
  Values y(maps * out * out);
  for (int m = 0; m < maps; ++m)
    for (int r = 0; r < out; ++r)
      for (int c = 0; c < out; ++c) {
        const double* corner = &x[(m * side + 2 * r) * side + 2 * c];
        y[(m * out + r) * out + c] = std::max({corner[0], corner[1], corner[side], corner[side + 1]});
      }
  return y;
}

Values Connect(const Values& x, const double* weight, const double* bias, int outputs) {
  Values y(bias, bias + outputs);
  for (int o = 0; o < outputs; ++o)
    for (size_t i = 0; i < x.size(); ++i) y[o] += weight[o * x.size() + i] * x[i];
  return y;
}

double Loss(const Values& w, const uint8_t* image, int label) {
  Values x(784);
  for (int i = 0; i < 784; ++i) x[i] = image[i] / 255.0;
  const double* conv1 = w.data();
  const double* conv2 = conv1 + 520;
  const double* ip1 = conv2 + 25050;
  const double* ip2 = ip1 + 400500;
  x = Pool(Convolve(x, 1, 28, conv1, conv1 + 500, 20), 20, 24);
  x = Pool(Convolve(x, 20, 12, conv2, conv2 + 25000, 50), 50, 8);
  x = Connect(x, ip1, ip1 + 400000, 500);
  for (double& value : x) value = std::max(value, 0.0);
  x = Connect(x, ip2, ip2 + 5000, 10);
  double sum = 0;
  for (const double logit : x) sum += std::exp(logit);
  return std::log(sum) - x[label];
}

double MeanLoss(const Values& w, const Dataset& dataset) {
  const auto* images = reinterpret_cast<const uint8_t*>(dataset.train.features.data());
  double sum = 0;
  for (int i = 0; i < kBatch; ++i) sum += Loss(w, images + i * 784, dataset.train.targets.Number(i));
  return sum / kBatch;
}

TEST(GradientTest, MatchesCentralDifferencesOfAPlainNetwork) {
  // Four examples in one batch, plain sgd with rate 1: the delta of one step is minus the gradient.
  const auto dataset = std::make_shared<const Dataset>(GlyphDigits({kBatch, 1, 5}));
  RunConfig config = SgdRun(kBatch, 1, 0);
  config.data.partition = "all";
  const auto trainer = TrainerOn(dataset, config, {0, 1}).value();
  const std::vector<float> weights = InitialWeights({"lenet5_caffe"}, 3).value();
  std::vector<float> delta(weights.size());
  const TrainResult result = trainer->Train(weights, {1}, nullptr, absl::MakeSpan(delta)).value();
  Values w(weights.begin(), weights.end());
  EXPECT_NEAR(result.mean_loss, MeanLoss(w, *dataset), 1e-5);

  Random random(11);
  int clearly_nonzero = 0;
  for (const TensorSpec& tensor : trainer->layout().tensors()) {
    for (int trial = 0; trial < 6; ++trial) {
      const int64_t i = tensor.offset + static_cast<int64_t>(random.Below(tensor.size));
      const double kept = w[i], h = 1e-5;
      w[i] = kept + h;
      const double above = MeanLoss(w, *dataset);
      w[i] = kept - h;
      const double below = MeanLoss(w, *dataset);
      w[i] = kept;
      const double slope = (above - below) / (2 * h);
      clearly_nonzero += std::abs(slope) > 1e-4;
      EXPECT_NEAR(-delta[i], slope, 2e-6 + 1e-3 * std::abs(slope)) << tensor.name << " " << i - tensor.offset;
    }
  }
  EXPECT_GT(clearly_nonzero, 20);
}

}  // namespace
}  // namespace terse
