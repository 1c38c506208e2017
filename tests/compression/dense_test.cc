#include "compression/dense.h"

#include <gtest/gtest.h>

#include "tests/compression/quantized_testing.h"

namespace terse {
namespace {

std::unique_ptr<const Codec> New(const std::vector<int64_t>& sizes) {
  return *DenseCodec::Create(CodecSpec(), MakeLayout(sizes));
}

TEST(Dense, IsTheFloatsThemselves) {
  const auto codec = New({2, 1});
  ExpectExample(*codec, {1, -2, 0.5}, "01 00 00 80 3f 00 00 00 c0 00 00 00 3f");
  EXPECT_EQ(codec->MaxMessageBytes(), 13);
  EXPECT_EQ(*codec->CostBits(std::vector<float>{1, -2, 0.5}), 96);
}

TEST(Dense, KeepsEveryBit) {
  std::vector<float> update;
  for (uint32_t bits = 0; bits < kInfinityBits; bits += 0x12345) {
    update.push_back(FloatFromBits(bits));
    update.push_back(FloatFromBits(bits | 0x80000000u));
  }
  const auto codec = New({static_cast<int64_t>(update.size())});
  const std::string message = *codec->Encode(update);
  const auto cursor = *codec->Open(message);
  DecodedRun run;
  size_t at = 0;
  do {
    ASSERT_TRUE(cursor->Next(update.size(), &run).ok());
    for (int64_t i = 0; i < run.count; ++i, ++at) ASSERT_EQ(FloatBits(run.values[i]), FloatBits(update[at]));
  } while (run.count > 0);
  EXPECT_EQ(at, update.size());
}

TEST(Dense, RefusesNotFiniteValuesInMessages) {
  const auto codec = New({2, 1});
  ExpectRefused(*codec, FromHex("01 00 00 80 3f 00 00 80 7f 00 00 00 3f"), "tensor 't0'");
  ExpectRefused(*codec, FromHex("01 00 00 80 3f 00 00 00 3f 01 00 c0 ff"), "tensor 't1'");
  ExpectRefused(*codec, FromHex("01 00 00 80 3f 00 00 00 3f 01 00 c0"), "ends inside");
}

TEST(CheckFloats, NamesTheFirstThatIsNotFinite) {
  const Layout layout = MakeLayout({2, 2});
  std::string bytes;
  AppendFloats({1, 2, 3, 4}, &bytes);
  EXPECT_TRUE(CheckFloats(layout, bytes).ok());
  EXPECT_EQ(FloatAt(bytes, 2), 3);
  EXPECT_FALSE(CheckFloats(layout, bytes.substr(1)).ok());
  bytes.replace(12, 4, FromHex("00 00 c0 7f"));
  EXPECT_NE(CheckFloats(layout, bytes).message().find("tensor 't1', index 1"), std::string::npos);
}

}  // namespace
}  // namespace terse
