#include "compression/sparseloco.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "compression/bit_stream.h"
#include "compression/feedback_table.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CodecSpec Spec(double density, int64_t bits, int64_t chunk, const std::string& positions = "rice") {
  CodecSpec spec = SparseSpec("sparseloco", density, "fp32", positions);
  spec.bits = bits;
  spec.bucket = chunk;
  return spec;
}

std::vector<float> RoundTrip(const CodecSpec& spec, const std::vector<float>& values) {
  const auto codec = *MakeCodec(spec, MakeLayout({static_cast<int64_t>(values.size())}));
  return Decode(*codec, *codec->Encode(values));
}

TEST(SparseLoCo, SendsTheExampleInItsHeader) {
  const std::vector<float> update = {1, -2, 0.5, 8, 0, 3, 0.25, -1};
  EXPECT_THAT(RoundTrip(Spec(0.5, 2, 4), update), ElementsAre(0, -2, 0, 8, 0, 1, 0, 1));
  // All are planned; four levels, three values, and Rice's positions 1, 3, 5, 7 (b = 0) of two bits each.
  const auto codec = *MakeCodec(Spec(0.5, 2, 4), MakeLayout({8}));
  EXPECT_EQ(*codec->CostBits(update), 1 + 4 * 2 + 3 * 32 + 4 * 2);
}

TEST(SparseLoCo, TakesTheLargestOfEveryChunk) {
  Random random(1);
  std::vector<float> update = RandomUpdate(10000, &random);
  for (size_t i = 4096; i < 8192; ++i) update[i] *= 1e-6f;  // a chunk that a selection of the tensor would leave out
  const CodecSpec spec = Spec(0.015625, 8, 4096);
  const auto codec = *MakeCodec(spec, MakeLayout({10000}));
  const auto sent = **codec->SentPositions(*codec->Encode(update));
  ASSERT_EQ(sent.size(), 64 + 64 + 28);  // round(1808 / 64) = 28
  for (size_t begin : {0, 4096, 8192}) {
    const size_t end = std::min<size_t>(begin + 4096, update.size());
    std::vector<int64_t> order(end - begin);
    std::iota(order.begin(), order.end(), static_cast<int64_t>(begin));
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return std::fabs(update[a]) > std::fabs(update[b]); });
    const std::set<int64_t> largest(order.begin(), order.begin() + (end - begin == 4096 ? 64 : 28));
    for (int64_t position : sent) {
      if (position >= static_cast<int64_t>(begin) && position < static_cast<int64_t>(end)) {
        EXPECT_EQ(largest.count(position), 1) << position;
      }
    }
  }
}

TEST(SparseLoCo, DecodesALevelToTheMeanOfItsValues) {
  // Mean 0, s = 2: levels are 3 wide, and -3 is in level 1, the others in level 2.
  EXPECT_THAT(RoundTrip(Spec(1, 2, 0), {-3, 1, 1, 1}), ElementsAre(-3, 1, 1, 1));
  // Mean 14, s = 24: 36 wide.
  EXPECT_THAT(RoundTrip(Spec(1, 2, 0), {1, 2, 3, 50}), ElementsAre(2, 2, 2, 50));
  EXPECT_THAT(RoundTrip(Spec(1, 2, 0), {9, -1, 1, -9, 9, -9}), ElementsAre(9, 0, 0, -9, 9, -9));
}

TEST(SparseLoCo, SendsEqualValuesAndTheWholeRangeOfFloat32AsTheyAre) {
  EXPECT_THAT(RoundTrip(Spec(1, 2, 0), {-0.1f, -0.1f, 0}), ElementsAre(-0.1f, -0.1f, 0));
  const float smallest = std::numeric_limits<float>::denorm_min();
  const float largest = std::numeric_limits<float>::max();
  for (float value : {smallest, largest}) {
    EXPECT_THAT(RoundTrip(Spec(1, 2, 0), {value, -value, value, -value}), ElementsAre(value, -value, value, -value));
  }
}

// A mean between two denormals rounds to zero; the table then has +0, which the decoder takes, and never -0.
TEST(SparseLoCo, HasNoNegativeZeroInItsTable) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const std::vector<float> update = {1, -1, -smallest, -smallest, smallest, 1, -1};
  const auto codec = *MakeCodec(Spec(1, 2, 0), MakeLayout({7}));
  const std::string message = *codec->Encode(update);
  EXPECT_EQ(codec->Validate(message), absl::OkStatus());
  for (float value : Decode(*codec, message)) EXPECT_NE(FloatBits(value), FloatBits(-0.0f));
}

TEST(SparseLoCo, SendsLessWhereAChunkIsZero) {
  const auto codec = *MakeCodec(Spec(0.5, 2, 4), MakeLayout({8, 4}));
  const std::vector<float> update = {0, 0, 0, 0, 5, -4, 3, 0, 0, 0, 0, 0};
  const std::string message = *codec->Encode(update);
  EXPECT_THAT(**codec->SentPositions(message), ElementsAre(4, 5));
}

// 2 bits a value and 12 a position, as published, and a header of each tensor that large tensors do not notice.
TEST(SparseLoCo, CostsThePublishedBits) {
  Random random(2);
  const int64_t chunks = 16;
  const auto codec = *MakeCodec(Spec(0.015625, 2, 4096, "chunk12"), MakeLayout({chunks * 4096}));
  const std::vector<float> update = RandomUpdate(codec->layout().size(), &random);
  const int64_t bits = *codec->CostBits(update);
  EXPECT_GE(bits, 64 * chunks * (2 + 12) + 1 + 14 + 2 * 32);
  EXPECT_LE(bits, 64 * chunks * (2 + 12) + 1 + 14 + 4 * 32);
  const auto rice = *MakeCodec(Spec(0.015625, 2, 4096, "rice"), MakeLayout({chunks * 4096}));
  EXPECT_LT(*rice->CostBits(update), 64 * chunks * (2 + 7.8));
}

// Error feedback with a decay is the published memory: e = beta * e + delta - sent.
TEST(SparseLoCo, KeepsThePublishedMemory) {
  CodecSpec spec = Spec(0.25, 2, 4);
  spec.decay = 0.5;
  const auto codec = *MakeCodec(spec, MakeLayout({4}));
  const auto feedback = *MakeFeedback(spec, codec.get());
  EXPECT_EQ(feedback->name(), "error_feedback");
  std::vector<float> delta = {8, 4, 2, 0};
  EXPECT_THAT(Decode(*codec, *feedback->Compress(&delta, {})), ElementsAre(8, 0, 0, 0));
  ASSERT_TRUE(feedback->Settle(true).ok());
  delta = {1, 0, 2, 0};
  EXPECT_THAT(Decode(*codec, *feedback->Compress(&delta, {})), ElementsAre(0, 0, 3, 0));
  ASSERT_TRUE(feedback->Settle(true).ok());
  EXPECT_THAT(feedback->dense(), ElementsAre(1, 2, 0, 0));
}

TEST(SparseLoCo, RefusesSettingsOutOfRange) {
  const Layout layout = MakeLayout({4});
  EXPECT_THAT(MakeCodec(Spec(0, 2, 4096), layout).status().message(), HasSubstr("codec.density"));
  EXPECT_THAT(MakeCodec(Spec(0.1, 0, 4096), layout).status().message(), HasSubstr("codec.bits is 0"));
  EXPECT_THAT(MakeCodec(Spec(0.1, 9, 4096), layout).status().message(), HasSubstr("codec.bits is 9"));
  EXPECT_THAT(MakeCodec(Spec(0.1, 2, -1), layout).status().message(), HasSubstr("codec.bucket"));
  EXPECT_THAT(MakeCodec(Spec(0.1, 2, 4096, "morse"), layout).status().message(), HasSubstr("morse"));
}

TEST(SparseLoCo, NamesTheElementThatIsNotFinite) {
  const auto codec = *MakeCodec(Spec(0.5, 2, 4), MakeLayout({3, 9}));
  std::vector<float> update(12, 1.0f);
  update[3 + 5] = std::nanf("");
  EXPECT_THAT(codec->Encode(update).status().message(), HasSubstr("'t1', index 5"));
}

// A message of one tensor of four elements, all of which are sent: the first has level 1, the others level 2.
std::string MessageWith(float first, float second) {
  std::string message = "\x0d";
  BitWriter writer(&message);
  writer.Put(1, 1);  // all planned
  for (const int level : {1, 2, 2, 2}) writer.Put(level, 2);
  writer.Put(FloatBits(first), 32);
  writer.Put(FloatBits(second), 32);
  writer.Put(15, 4);  // four positions without zeros before them
  writer.Finish();
  return message;
}

TEST(SparseLoCo, RefusesTablesThatItDoesNotMake) {
  const auto codec = *MakeCodec(Spec(1, 2, 0), MakeLayout({4}));
  EXPECT_EQ(*codec->Encode({-3, 1, 1, 1}), MessageWith(-3, 1));
  EXPECT_EQ(codec->Validate(MessageWith(0, 1)), absl::OkStatus());
  for (const std::string& message :
       {MessageWith(1, 1), MessageWith(2, 1), MessageWith(-0.0f, 1), MessageWith(-1, std::nanf("")),
        MessageWith(std::nanf(""), 1), MessageWith(-1, std::numeric_limits<float>::infinity()),
        MessageWith(-std::numeric_limits<float>::infinity(), 1)}) {
    EXPECT_THAT(codec->Validate(message).message(), HasSubstr("finite, increase, and not be -0"));
  }
}

}  // namespace
}  // namespace terse
