#include "core/norm_code.h"

#include <algorithm>
#include <cmath>

namespace terse {
namespace {

constexpr int kCodeOfOne = 64;
constexpr double kStepsOfOctave = 4;

}  // namespace

int NormCode(double norm) {
  if (norm == 0) return 0;
  if (!std::isfinite(norm)) return kMostNormCode;
  const double code = kCodeOfOne + std::round(kStepsOfOctave * std::log2(norm));
  return static_cast<int>(std::clamp<double>(code, 1, kMostNormCode));
}

double NormFrom(int code) { return code == 0 ? 0 : std::exp2((code - kCodeOfOne) / kStepsOfOctave); }

}  // namespace terse
