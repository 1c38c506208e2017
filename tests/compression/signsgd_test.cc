#include "compression/signsgd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compression/quantized_testing.h"

namespace terse {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<const Codec> New(const std::string& name, const std::vector<int64_t>& sizes) {
  CodecSpec spec;
  spec.name = name;
  return *SignSgdCodec::Create(spec, MakeLayout(sizes));
}

TEST(SignSgd, HasTheBytesOfItsFormat) {
  for (const char* name : {"signsgd", "signum"}) {
    const auto codec = New(name, {3, 2});
    EXPECT_EQ(codec->name(), name);
    ExpectExample(*codec, {0.5, -3, 0, -1, -1}, "14 1a");
    EXPECT_EQ(*codec->CostBits(std::vector<float>(5)), 5);
  }
}

TEST(SignSgd, TakesZerosForPositive) {
  EXPECT_THAT(RoundTrip(*New("signsgd", {5}), {0, -0.0f, -0x1p-149f, 0x1p-149f, -3e38f}), ElementsAre(1, 1, -1, 1, -1));
}

TEST(SignSgd, RefusesOtherLengthsAndPadding) {
  const auto codec = New("signsgd", {9});
  EXPECT_TRUE(codec->Validate(FromHex("14 ff 01")).ok());
  ExpectRefused(*codec, FromHex("14 ff 02"), "behind its last");
  ExpectRefused(*codec, FromHex("14 ff"), "ends inside");
  ExpectRefused(*codec, FromHex("14 ff 01 00"), "at most 3");
}

}  // namespace
}  // namespace terse
