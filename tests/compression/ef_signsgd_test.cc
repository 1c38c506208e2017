#include "compression/ef_signsgd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compression/exact_math.h"
#include "tests/compression/quantized_testing.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::unique_ptr<const Codec> New(const std::vector<int64_t>& sizes, int64_t bucket = 0) {
  CodecSpec spec;
  spec.name = "ef_signsgd";
  spec.bucket = bucket;
  return *EfSignSgdCodec::Create(spec, MakeLayout(sizes));
}

TEST(EfSignSgd, HasTheBytesOfItsFormat) {
  ExpectExample(*New({4}), {0.5, -3, 0, 0.5}, "15 00 00 80 3f 02");
  EXPECT_THAT(RoundTrip(*New({4}), {0.5, -3, 0, 0.5}), ElementsAre(1, -1, 1, 1));
}

TEST(EfSignSgd, ScalesEveryBucketByItsMeanMagnitude) {
  EXPECT_THAT(RoundTrip(*New({5}, 2), {1, -3, 8, -0.0f, -7}), ElementsAre(2, -2, 4, 4, -7));
  EXPECT_EQ(*New({5}, 2)->CostBits(std::vector<float>(5)), 3 * 32 + 5);
  EXPECT_EQ(*New({1000})->CostBits(std::vector<float>(1000)), 32 + 1000);
}

// Assumption A of the paper: ||C(p) - p||^2 <= (1 - ||p||_1^2 / (d ||p||_2^2)) * ||p||^2, with equality.
TEST(EfSignSgd, IsTheContractionOfItsPaper) {
  Random random(1);
  const std::vector<float> update = RandomUpdate(1000, &random);
  const std::vector<float> decoded = RoundTrip(*New({1000}), update);
  double error = 0, norm1 = 0;
  for (size_t i = 0; i < update.size(); ++i) {
    error += std::pow(static_cast<double>(decoded[i]) - update[i], 2);
    norm1 += std::abs(update[i]);
  }
  const double expected = SquaredNorm(update) - norm1 * norm1 / 1000;
  EXPECT_NEAR(error, expected, 1e-4 * expected);
}

TEST(EfSignSgd, KeepsTheEndsOfTheRange) {
  EXPECT_THAT(RoundTrip(*New({700}), std::vector<float>(700, -kLargestFloat)), Each(-kLargestFloat));
  EXPECT_THAT(RoundTrip(*New({1}), {-0x1p-149f}), ElementsAre(-0x1p-149f));
  EXPECT_THAT(RoundTrip(*New({3}), {-0.0f, 0, 0}), Each(0.0f));
  // Their mean is nearer to 0 than to any other number: everything is 0 then, and without signs.
  const std::vector<float> tiny = {-0x1p-149f, 0, 0, -0.0f};
  EXPECT_EQ(*New({4})->Encode(tiny), *New({4})->Encode(std::vector<float>(4)));
}

TEST(EfSignSgd, RefusesWhatItDoesNotWrite) {
  const auto codec = New({4});
  ExpectRefused(*codec, FromHex("15 00 00 00 00 02"), "does not fit");
  ExpectRefused(*codec, FromHex("15 00 00 80 bf 02"), "header");
  ExpectRefused(*codec, FromHex("15 00 00 c0 7f 02"), "header");
  ExpectRefused(*codec, FromHex("15 00 00 80 3f 12"), "behind its last");
  ExpectRefused(*codec, FromHex("15 00 00 80"), "ends inside");
}

}  // namespace
}  // namespace terse
