#include "compression/dgc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Dgc, ObeysADensityATensor) {
  const auto codec = NewCodec("dgc", 0.25, "fp32", MakeLayout({4, 4}));
  const std::vector<float> update = {1, -2, 3, -4, 5, 6, 7, 8};
  EXPECT_THAT(Decode(*codec, *codec->Encode(update)), ElementsAre(0, 0, 0, -4, 0, 0, 0, 8));
  const std::vector<double> rates = {0.5, 1.0};
  EncodeOptions options;
  options.rates = rates;
  EXPECT_THAT(Decode(*codec, *codec->Encode(update, options)), ElementsAre(0, 0, 3, -4, 5, 6, 7, 8));
}

TEST(Dgc, RefusesARateOutOfRange) {
  const auto codec = NewCodec("dgc", 0.25, "fp32", MakeLayout({4, 4}));
  for (double rate : {-0.5, 1.001, std::nan("")}) {
    const std::vector<double> rates = {0.5, rate};
    EncodeOptions options;
    options.rates = rates;
    const absl::Status status = codec->Encode(std::vector<float>(8, 1.0f), options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("'t1': a rate of"));
  }
}

// The bit length of n, 32 bits an element, the positions; only the length for a tensor of zeros.
TEST(Dgc, CostsWhatItsHeaderSays) {
  const auto codec = NewCodec("dgc", 0.5, "fp32", MakeLayout({4, 7}));
  // Rice at 2 of 4 has b = 0: the position and one bit each, so 4 bits for positions 2 and 3.
  EXPECT_EQ(*codec->CostBits({0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0}), (3 + 2 * 32 + 4) + 3);
}

TEST(Dgc, RefusesACountAboveTheTensorsSize) {
  const auto codec = NewCodec("dgc", 0.5, "fp32", MakeLayout({4}));
  EXPECT_THAT(codec->Validate(std::string("\x08\x05", 2)).message(), HasSubstr("a count of 5; at most 4"));
}

}  // namespace
}  // namespace terse
