#include "bench/robust/attack.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "compression/bit_stream.h"
#include "core/random.h"

namespace terse {
namespace {

using Deltas = absl::Span<const absl::Span<float>>;

constexpr float kScale = 100;
constexpr float kFlip = -10;
constexpr double kDeviations = 1.5;
constexpr float kHuge = 3e38f;
constexpr uint64_t kShuffleSeed = 0x5ca77e2;

void Multiply(Deltas hostile, float factor) {
  for (const absl::Span<float> delta : hostile) {
    for (float& value : delta) value *= factor;
  }
}

void Collude(Deltas all) {
  std::vector<absl::Span<float>> hostile;
  for (const absl::Span<float> delta : all) {
    if (!delta.empty()) hostile.push_back(delta);
  }
  if (hostile.empty()) return;
  const auto count = static_cast<double>(hostile.size());
  for (size_t i = 0; i < hostile[0].size(); ++i) {
    double sum = 0, squares = 0;
    for (const absl::Span<float> delta : hostile) sum += static_cast<double>(delta[i]);
    const double mean = sum / count;
    for (const absl::Span<float> delta : hostile) squares += (delta[i] - mean) * (delta[i] - mean);
    const double deviation = count > 1 ? std::sqrt(squares / (count - 1)) : 0;
    for (const absl::Span<float> delta : hostile) delta[i] = static_cast<float>(mean - kDeviations * deviation);
  }
}

void FillHuge(Deltas hostile) {
  for (const absl::Span<float> delta : hostile) std::fill(delta.begin(), delta.end(), kHuge);
}

// The seed is a trained value, which differs from round to round, so every round is shuffled differently.
void Shuffle(Deltas hostile) {
  for (const absl::Span<float> delta : hostile) {
    if (delta.empty()) continue;
    Random random(kShuffleSeed, FloatBits(delta[0]));
    for (size_t i = delta.size() - 1; i > 0; --i) std::swap(delta[i], delta[random.Below(i + 1)]);
  }
}

}  // namespace

const std::vector<Attack>& Attacks() {
  static const auto& attacks = *new std::vector<Attack>{
      {"none", "none", [](Deltas) {}},
      {"scaled", "scaled x100", [](Deltas hostile) { Multiply(hostile, kScale); }},
      {"sign_flip", "sign flipped x10", [](Deltas hostile) { Multiply(hostile, kFlip); }},
      {"colluding", "colluding", Collude},
      {"huge", "3e38 everywhere", FillHuge},
      {"random", "random positions", Shuffle},
  };
  return attacks;
}

}  // namespace terse
