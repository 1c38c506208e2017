#include "compression/downstream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "compression/aggregate.h"
#include "compression/bit_stream.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Downstream : public ::testing::Test {
 protected:
  // Messages of `count` random updates.
  void Fill(const std::string& codec_name, double density, int count) {
    codec_ = NewCodec(codec_name, density, "fp32", MakeLayout({7, 300, 20}));
    Random random(count);
    const int64_t size = codec_->layout().size();
    for (int i = 0; i < count; ++i) messages_.push_back(*codec_->Encode(RandomUpdate(size, &random)));
    views_.assign(messages_.begin(), messages_.end());
    average_.resize(codec_->layout().size());
    ASSERT_TRUE(AverageUpdates(*codec_, views_, 1, absl::MakeSpan(average_)).ok());
  }

  std::vector<float> Apply(const std::string& message) const {
    std::vector<float> weights(codec_->layout().size(), 0.1f), scratch;
    const absl::Status status = ApplyDownstream(*codec_, message, &scratch, absl::MakeSpan(weights));
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(scratch, average_);
    return weights;
  }

  // Refused with the weights untouched; returns the reason.
  std::string Refusal(const std::string& message) const {
    std::vector<float> weights(codec_->layout().size(), 0.1f), scratch;
    const absl::Status status = ApplyDownstream(*codec_, message, &scratch, absl::MakeSpan(weights));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(weights, Each(0.1f));
    return std::string(status.message());
  }

  std::unique_ptr<const Codec> codec_;
  std::vector<std::string> messages_;
  std::vector<absl::string_view> views_;
  std::vector<float> average_;
};

TEST_F(Downstream, ForwardAndDenseGiveTheSameWeights) {
  for (const std::string& name : CodecNames()) {
    for (int count : {1, 3, 7, 150}) {
      messages_.clear();
      Fill(name, 0.05, count);
      const std::vector<float> forward = Apply(BuildDownstream(DownstreamMode::kForward, views_, average_));
      const std::vector<float> dense = Apply(BuildDownstream(DownstreamMode::kDense, views_, average_));
      EXPECT_EQ(std::memcmp(forward.data(), dense.data(), 4 * forward.size()), 0) << name << " of " << count;
    }
  }
}

TEST_F(Downstream, AverageIsTheScaledSumInOrder) {
  codec_ = NewCodec("dense", 1, "fp32", MakeLayout({2}));
  const std::string a = *codec_->Encode({1, 1e8}), b = *codec_->Encode({2, 1}), c = *codec_->Encode({3, -1e8});
  std::vector<float> average(2, 99.0f);
  ASSERT_TRUE(AverageUpdates(*codec_, {a, b, c}, 1, absl::MakeSpan(average)).ok());
  EXPECT_THAT(average, ElementsAre(6.0f * (1.0f / 3.0f), 0.0f));
}

TEST_F(Downstream, AverageNamesWhatIsWrong) {
  Fill("sbc", 0.05, 2);
  std::vector<float> average(average_.size());
  EXPECT_EQ(AverageUpdates(*codec_, {}, 1, absl::MakeSpan(average)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AverageUpdates(*codec_, views_, 1, absl::MakeSpan(average).subspan(1)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(AverageUpdates(*codec_, {views_[0], "x"}, 1, absl::MakeSpan(average)).message()),
              HasSubstr("update 1"));
  const std::vector<float> huge(average.size(), std::numeric_limits<float>::max());
  const std::string message = *codec_->Encode(huge);
  EXPECT_THAT(std::string(AverageUpdates(*codec_, {message, message}, 1, absl::MakeSpan(average)).message()),
              HasSubstr("tensor 't0', index 0: the sum of the updates overflows"));
}

TEST_F(Downstream, AutoTakesTheSmaller) {
  Fill("sbc", 0.05, 2);
  EXPECT_EQ(BuildDownstream(DownstreamMode::kAuto, views_, average_),
            BuildDownstream(DownstreamMode::kForward, views_, average_));
  messages_.clear();
  Fill("sbc", 0.05, 100);
  EXPECT_EQ(BuildDownstream(DownstreamMode::kAuto, views_, average_),
            BuildDownstream(DownstreamMode::kDense, views_, average_));
}

TEST_F(Downstream, RefusesTruncationTrailingBytesAndUnknownForms) {
  Fill("sbc", 0.05, 3);
  for (DownstreamMode mode : {DownstreamMode::kForward, DownstreamMode::kDense}) {
    const std::string message = BuildDownstream(mode, views_, average_);
    for (size_t size = 0; size < message.size(); ++size) Refusal(message.substr(0, size));
    Refusal(message + std::string(1, '\0'));
    Refusal("\x83" + message.substr(1));
  }
}

TEST_F(Downstream, RefusesBadCountsAndLengths) {
  Fill("sbc", 0.05, 2);
  EXPECT_THAT(Refusal(std::string("\x81\0", 2)), HasSubstr("number of updates"));
  EXPECT_THAT(Refusal(std::string("\x81\xff\xff\xff\xff\x0f\x01\x01", 8)), HasSubstr("number of updates"));
  EXPECT_THAT(Refusal("\x81\xff\xff\xff\xff\xff\xff"), HasSubstr("number of updates"));
  EXPECT_THAT(Refusal(std::string("\x81\x01\x00\x00", 4)), HasSubstr("ends in update 0"));
  // The same message with its count written in two bytes.
  const std::string forward = BuildDownstream(DownstreamMode::kForward, views_, average_);
  EXPECT_THAT(Refusal(std::string("\x81\x82\0", 3) + forward.substr(2)), HasSubstr("number of updates"));
}

TEST_F(Downstream, RefusesOrBoundsEverySingleByteCorruption) {
  Fill("sbc", 0.05, 2);
  for (DownstreamMode mode : {DownstreamMode::kForward, DownstreamMode::kDense}) {
    const std::string message = BuildDownstream(mode, views_, average_);
    for (size_t at = 0; at < message.size(); ++at) {
      for (int change : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
        std::string broken = message;
        broken[at] = static_cast<char>(broken[at] ^ change);
        std::vector<float> weights(average_.size(), 0.1f), scratch;
        if (!ApplyDownstream(*codec_, broken, &scratch, absl::MakeSpan(weights)).ok()) {
          EXPECT_THAT(weights, Each(0.1f));
        }
      }
    }
  }
}

TEST_F(Downstream, RefusesADenseAverageThatIsNotFinite) {
  Fill("sbc", 0.05, 1);
  average_[8] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(Refusal(BuildDownstream(DownstreamMode::kDense, views_, average_)), HasSubstr("tensor 't1', index 1"));
}

TEST_F(Downstream, RefusesWeightsOfAnotherSize) {
  Fill("sbc", 0.05, 1);
  std::vector<float> weights(3), scratch;
  EXPECT_EQ(ApplyDownstream(*codec_, BuildDownstream(DownstreamMode::kForward, views_, average_), &scratch,
                            absl::MakeSpan(weights))
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace terse
