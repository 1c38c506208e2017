#include "compression/half_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compression/half_bits.h"
#include "tests/compression/quantized_testing.h"

namespace terse {
namespace {

using ::testing::ElementsAre;

// The number that the fields stand for, by IEEE 754's definition.
double Fp16Value(uint32_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = (bits & 1023) / 1024.0;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return bits >> 15 != 0 ? -magnitude : magnitude;
}

double Bf16Value(uint32_t bits) {
  const int exponent = bits >> 7 & 255;
  const double fraction = (bits & 127) / 128.0;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -126) : std::ldexp(1 + fraction, exponent - 127);
  return bits >> 15 != 0 ? -magnitude : magnitude;
}

TEST(HalfPrecision, HasTheBytesOfItsFormat) {
  const CodecSpec spec;
  const auto fp16 = *HalfPrecisionCodec::CreateFp16(spec, MakeLayout({3}));
  ExpectExample(*fp16, {1, -2, 70000}, "18 00 3c 00 c0 ff 7b");
  EXPECT_EQ(*fp16->CostBits(std::vector<float>(3)), 48);
  EXPECT_THAT(RoundTrip(*fp16, {1, 0.1f, 70000}), ElementsAre(1, 0.0999755859375f, 65504));
  const auto bf16 = *HalfPrecisionCodec::CreateBf16(spec, MakeLayout({2}));
  ExpectExample(*bf16, {1, -2}, "19 80 3f 00 c0");
}

TEST(Fp16, KeepsEveryNumberOfItsOwn) {
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    if ((bits & 0x7c00) == 0x7c00) continue;
    const float value = FromFp16(static_cast<uint16_t>(bits));
    ASSERT_EQ(value, Fp16Value(bits)) << bits;
    ASSERT_EQ(std::signbit(value), bits >> 15 != 0) << bits;
    ASSERT_EQ(ToFp16(value), bits);
  }
}

TEST(Bf16, KeepsEveryNumberOfItsOwn) {
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    if ((bits & 0x7f80) == 0x7f80) continue;
    const float value = FromBf16(static_cast<uint16_t>(bits));
    ASSERT_EQ(value, Bf16Value(bits)) << bits;
    ASSERT_EQ(std::signbit(value), bits >> 15 != 0) << bits;
    ASSERT_EQ(ToBf16(value), bits);
  }
}

// Checks three numbers between each two neighbours: a little below the middle, the middle, a little above.
template <typename Value, typename Convert>
void ExpectNearest(uint32_t infinity, Value value, Convert convert) {
  for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
    const double middle = (value(bits) + value(bits + 1)) / 2;
    const float at = static_cast<float>(middle);
    for (uint32_t sign : {0u, 0x8000u}) {
      const float signed_at = sign != 0 ? -at : at;
      if (at == middle) {
        ASSERT_EQ(convert(signed_at), sign | (bits + bits % 2)) << bits;
      }
      ASSERT_EQ(convert(std::nextafter(signed_at, 0.0f)), sign | bits) << bits;
      ASSERT_EQ(convert(std::nextafter(signed_at, sign != 0 ? -1e38f : 1e38f)), sign | (bits + 1)) << bits;
    }
  }
}

TEST(Fp16, RoundsToNearestTiesToEven) { ExpectNearest(0x7c00, Fp16Value, ToFp16); }

TEST(Bf16, RoundsToNearestTiesToEven) {
  // The largest neighbours are above 1e38, and the smallest middle between float32s.
  ExpectNearest(0x7e80, Bf16Value, ToBf16);
}

TEST(HalfPrecision, SaturatesAndFlushesOnlyBelowHalfTheSmallest) {
  EXPECT_EQ(ToFp16(65519.99f), 0x7bff);
  EXPECT_EQ(ToFp16(65520), 0x7bff);
  EXPECT_EQ(ToFp16(-3e38f), 0xfbff);
  EXPECT_EQ(ToFp16(0x1p-25f), 0);
  EXPECT_EQ(ToFp16(-0x1.000002p-25f), 0x8001);
  EXPECT_EQ(ToFp16(0x1p-149f), 0);
  EXPECT_EQ(ToFp16(-0.0f), 0x8000);
  EXPECT_EQ(ToBf16(FloatFromBits(0x7f7fffff)), 0x7f7f);
  EXPECT_EQ(ToBf16(FloatFromBits(0xff7f8000)), 0xff7f);
  EXPECT_EQ(ToBf16(FloatFromBits(0x00008000)), 0);
  EXPECT_EQ(ToBf16(FloatFromBits(0x80008001)), 0x8001);
}

TEST(HalfPrecision, RefusesNotFiniteNumbers) {
  const auto fp16 = *HalfPrecisionCodec::CreateFp16(CodecSpec(), MakeLayout({3}));
  const auto bf16 = *HalfPrecisionCodec::CreateBf16(CodecSpec(), MakeLayout({3}));
  ExpectRefused(*fp16, FromHex("18 00 3c 00 7c 00 00"), "never writes");
  ExpectRefused(*fp16, FromHex("18 00 3c 00 00 01 fe"), "never writes");
  ExpectRefused(*fp16, FromHex("18 00 3c 00 00 00"), "ends inside");
  EXPECT_TRUE(bf16->Validate(FromHex("19 00 3c 00 7c 00 00")).ok());
  ExpectRefused(*bf16, FromHex("19 00 3c 80 7f 00 00"), "never writes");
  ExpectRefused(*bf16, FromHex("19 00 3c 00 00 c0 ff"), "never writes");
}

}  // namespace
}  // namespace terse
