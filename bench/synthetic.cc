#include "bench/synthetic.h"

#include <algorithm>
#include <cmath>

namespace terse {

Layout OneTensor(int64_t size) { return *Layout::Create({{"weight", {size}}}); }

Layout LeNet5Tensors() {
  return *Layout::Create({{"conv1.weight", {20, 1, 5, 5}},
                          {"conv1.bias", {20}},
                          {"conv2.weight", {50, 20, 5, 5}},
                          {"conv2.bias", {50}},
                          {"ip1.weight", {500, 800}},
                          {"ip1.bias", {500}},
                          {"ip2.weight", {10, 500}},
                          {"ip2.bias", {10}}});
}

std::vector<float> Gaussian(int64_t size, uint64_t seed) {
  Random random(seed);
  std::vector<float> numbers(size);
  for (float& number : numbers) {
    const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
    number = static_cast<float>(radius * std::cos(2 * M_PI * random.Uniform()));
  }
  return numbers;
}

UpdateStream::UpdateStream(int64_t size, uint64_t seed) : random_(seed), numbers_(size) {
  for (float& number : numbers_) {
    const double magnitude = -std::log(1 - random_.Uniform());
    number = static_cast<float>(random_.Below(2) == 0 ? magnitude : -magnitude);
  }
}

void UpdateStream::Next(std::vector<float>* update) {
  const int64_t shift = static_cast<int64_t>(random_.Below(numbers_.size()));
  std::rotate_copy(numbers_.begin(), numbers_.begin() + shift, numbers_.end(), update->begin());
}

std::vector<uint32_t> RandomPositions(int64_t count, int64_t size, uint64_t seed) {
  Random random(seed);
  std::vector<bool> chosen(size);
  for (int64_t left = count; left > 0;) {
    const uint64_t position = random.Below(size);
    if (chosen[position]) continue;
    chosen[position] = true;
    --left;
  }
  std::vector<uint32_t> positions;
  positions.reserve(count);
  for (int64_t i = 0; i < size; ++i) {
    if (chosen[i]) positions.push_back(static_cast<uint32_t>(i));
  }
  return positions;
}

double PositionEntropy(int64_t count, int64_t size) {
  const auto log_factorial = [](int64_t n) { return std::lgamma(static_cast<double>(n) + 1); };
  return (log_factorial(size) - log_factorial(count) - log_factorial(size - count)) / std::log(2.0) /
         static_cast<double>(count);
}

}  // namespace terse
