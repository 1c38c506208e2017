// A model of 7 billion elements, which is never allocated: positions stay 32-bit in a tensor and go beyond that in the
// model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compression/bit_stream.h"
#include "compression/rice.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kLarge = 1'750'000'000;
// Every large tensor sends two elements of it, and the small one one.
constexpr double kDensity = 1e-9;

Layout SevenBillion() { return MakeLayout({kLarge, kLarge, 3, kLarge, kLarge}); }

// The flat positions of the elements that Message sends.
constexpr int64_t kLast = 4 * kLarge + 2;
const std::vector<int64_t>& Sent() {
  static const auto* const sent = new std::vector<int64_t>{
      0, kLarge - 1, kLarge + 7, kLarge + 8, 2 * kLarge + 1, 2 * kLarge + 3, 3 * kLarge, 3 * kLarge + 4, kLast};
  return *sent;
}

// A message of sbc (FORMAT.md) with these elements, each with the number of its tensor, from 1 on, as its value.
std::string Message(const Layout& layout) {
  const std::string number = NewCodec("sbc", 1, "fp32", MakeLayout({1}))->Encode({1.0f})->substr(0, 1);
  std::string message = number;
  BitWriter writer(&message);
  writer.Put(1, 1);  // all counts are as planned
  for (size_t t = 0; t < layout.tensors().size(); ++t) {
    const TensorSpec& tensor = layout.tensors()[t];
    std::vector<uint32_t> positions;
    for (const int64_t at : Sent()) {
      if (at >= tensor.offset && at < tensor.offset + tensor.size) {
        positions.push_back(static_cast<uint32_t>(at - tensor.offset));
      }
    }
    writer.Put(FloatBits(static_cast<float>(t + 1)), 32);
    RiceCoder().Put(positions, tensor.size, &writer);
  }
  writer.Finish();
  return message;
}

TEST(LargeLayout, ACodecReadsPositionsBeyondThirtyTwoBits) {
  const Layout layout = SevenBillion();
  ASSERT_EQ(layout.size(), 4 * kLarge + 3);
  const auto codec = NewCodec("sbc", kDensity, "fp32", layout);
  const std::string message = Message(layout);
  const auto sent = codec->SentPositions(message);
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(**sent, Sent());
  const auto size = codec->Measure(message);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(size->largest, 5.0f);
  EXPECT_DOUBLE_EQ(size->norm * size->norm, 2 * (1 + 4 + 16 + 25) + 9);
  EXPECT_GT(codec->MaxMessageBytes(), 0);
}

TEST(LargeLayout, ACursorStopsAndGoesOnAtLimitsBeyondThirtyTwoBits) {
  const Layout layout = SevenBillion();
  const auto codec = NewCodec("sbc", kDensity, "fp32", layout);
  const std::string message = Message(layout);
  const auto cursor = *codec->Open(message);
  DecodedRun run;
  const int64_t limit = 3 * kLarge + 4;
  std::vector<int64_t> below;
  do {
    ASSERT_EQ(cursor->Next(limit, &run), absl::OkStatus());
    for (int64_t i = 0; i < run.count; ++i) below.push_back(run.PositionOf(i));
  } while (run.count > 0);
  EXPECT_EQ(below, std::vector<int64_t>(Sent().begin(), Sent().end() - 2));
  // A window of the model: its first element is the model's element `limit`.
  std::vector<float> window(1000);
  ASSERT_EQ(cursor->Next(limit + 1000, &run), absl::OkStatus());
  AddRun(run, -1.0f, limit, window.data());
  ASSERT_EQ(run.count, 1);
  EXPECT_EQ(window[0], -5.0f);
  std::vector<float> end(3);
  ASSERT_EQ(cursor->Next(layout.size(), &run), absl::OkStatus());
  ASSERT_EQ(run.count, 1);
  AddRunNear(run, 1.0f, layout.size() - 3, end.data());
  EXPECT_THAT(end, ElementsAre(0.0f, 0.0f, 5.0f));
}

TEST(LargeLayout, GroupingThatMakesATooLargeTensorSaysSo) {
  CodecSpec spec = SparseSpec("sbc", kDensity);
  spec.grouping = "global";
  const absl::Status status = MakeCodec(spec, SevenBillion()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("codec.grouping = 'global' would make one tensor of 7000000003"));
}

// The small tensor leads in what is sent, and stands between the others in the model.
TEST(LargeLayout, MergedTensorsLieBeyondThirtyTwoBitsToo) {
  CodecSpec spec = SparseSpec("sbc", kDensity);
  spec.grouping = "merge_small";
  spec.merge_below = 4;
  const Layout layout = MakeLayout({kLarge, kLarge, 3, kLarge, 2, kLarge});
  const auto codec = *MakeCodec(spec, layout);
  // The groups as the inner codec has them: five elements of the small tensors, and then the large ones.
  const Layout groups = MakeLayout({5, kLarge, kLarge, kLarge, kLarge});
  std::string message = NewCodec("sbc", 1, "fp32", MakeLayout({1}))->Encode({1.0f})->substr(0, 1);
  BitWriter writer(&message);
  writer.Put(1, 1);
  for (const TensorSpec& group : groups.tensors()) {
    writer.Put(FloatBits(1.0f), 32);
    const std::vector<uint32_t> positions =
        group.size == 5 ? std::vector<uint32_t>{4} : std::vector<uint32_t>{1, static_cast<uint32_t>(kLarge) - 1};
    RiceCoder().Put(positions, group.size, &writer);
  }
  writer.Finish();
  const auto sent = codec->SentPositions(message);
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_THAT(**sent, ElementsAre(1, kLarge - 1, kLarge + 1, 2 * kLarge - 1, 2 * kLarge + 4, 3 * kLarge + 2,
                                  3 * kLarge + 4, 3 * kLarge + 6, 4 * kLarge + 4));
}

}  // namespace
}  // namespace terse
