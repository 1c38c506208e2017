#include "learning/portable_math.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace terse {
namespace {

TEST(PortableMathTest, AgreesWithTheStandardLibrary) {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const double x = std::exp(random.Uniform(-690, 690));
    EXPECT_NEAR(PortableLog(x), std::log(x), 4e-16 * std::abs(std::log(x)) + 1e-16) << x;
    const double y = random.Uniform(-690, 690);
    EXPECT_NEAR(PortableExp(y) / std::exp(y), 1, 2e-15) << y;
    const double close = random.Uniform(0.5, 2);
    EXPECT_NEAR(PortableLog(close), std::log(close), 4e-16) << close;
  }
  EXPECT_EQ(PortableLog(1), 0);
  EXPECT_EQ(PortableExp(0), 1);
  EXPECT_EQ(PortableExp(-701), 0);
}

TEST(PortableMathTest, IsTheSameOnEveryMachine) {
  // The values are from the same series in Python's floats.
  EXPECT_EQ(PortableLog(10), 0x1.26bb1bbb55516p+1);
  EXPECT_EQ(PortableExp(1), 0x1.5bf0a8b14576ap+1);
}

TEST(PortableMathTest, GammaDrawsHaveTheirMoments) {
  for (const double shape : {0.1, 0.5, 1.0, 3.0, 100.0}) {
    Random random(7);
    const int draws = 200000;
    double sum = 0, squares = 0, logs = 0;
    for (int i = 0; i < draws; ++i) {
      const double log = LogGammaDraw(shape, &random), value = std::exp(log);
      sum += value;
      squares += value * value;
      logs += log;
    }
    const double mean = sum / draws, variance = squares / draws - mean * mean;
    // Mean and variance are the shape; four standard errors of each.
    EXPECT_NEAR(mean, shape, 4 * std::sqrt(shape / draws)) << shape;
    EXPECT_NEAR(variance, shape, 4 * std::sqrt((2 * shape * shape + 6 * shape) / draws)) << shape;
    // The mean of the logarithm is the digamma function.
    const double h = 1e-5, digamma = (std::lgamma(shape + h) - std::lgamma(shape - h)) / (2 * h);
    EXPECT_NEAR(logs / draws, digamma, 4 / shape / std::sqrt(draws) + 4 / std::sqrt(shape * draws)) << shape;
  }
}

TEST(PortableMathTest, DrawsOfTinyShapesStayFinite) {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const double log = LogGammaDraw(0.001, &random);
    EXPECT_TRUE(std::isfinite(log));
    EXPECT_LT(log, 10);
  }
}

}  // namespace
}  // namespace terse
