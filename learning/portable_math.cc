#include "learning/portable_math.h"

#include <cmath>

namespace terse {
namespace {

// ln 2 in two parts: whole multiples of the first are exact for the exponents of doubles.
constexpr double kLn2High = 0x1.62e42fee00000p-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;

// Uniform in (0, 1), never an end.
double Open(Random* random) { return (static_cast<double>(random->Next() >> 12) + 0.5) * 0x1.0p-52; }

// Standard normal, by Marsaglia's polar method.
double NormalDraw(Random* random) {
  while (true) {
    const double x = 2 * Open(random) - 1, y = 2 * Open(random) - 1;
    const double s = x * x + y * y;
    if (s < 1 && s > 0) return x * std::sqrt(-2 * PortableLog(s) / s);
  }
}

}  // namespace

double PortableLog(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // exact, as are ldexp and floor
  if (mantissa < kSqrtHalf) {
    mantissa *= 2;
    --exponent;
  }
  // ln m = 2 artanh t = 2 (t + t^3/3 + t^5/5 + ...) with |t| < 0.172.
  const double t = (mantissa - 1) / (mantissa + 1), square = t * t;
  double sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return exponent * kLn2High + (2 * t * sum + exponent * kLn2Low);
}

double PortableExp(double x) {
  if (x < -700) return 0;
  const double whole = std::floor(x / (kLn2High + kLn2Low) + 0.5);
  const double rest = (x - whole * kLn2High) - whole * kLn2Low;  // |rest| < 0.35
  double sum = 1;
  for (int k = 18; k >= 1; --k) sum = 1 + sum * rest / k;
  return std::ldexp(sum, static_cast<int>(whole));
}

double LogGammaDraw(double shape, Random* random) {
  // Gamma(a) = Gamma(a + 1) U^(1/a).
  const double boost = shape < 1 ? PortableLog(Open(random)) / shape : 0;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = NormalDraw(random), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (PortableLog(Open(random)) < 0.5 * x * x + d - d * v + d * PortableLog(v)) {
      return PortableLog(d) + PortableLog(v) + boost;
    }
  }
}

}  // namespace terse
