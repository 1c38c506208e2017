// Averages of more updates than have their cursors open at a time.
#include "compression/aggregate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr int kUpdates = 150;

class ManyUpdates : public ::testing::TestWithParam<std::pair<const char*, double>> {
 protected:
  ManyUpdates() {
    Random random(3);
    const int64_t size = codec_->layout().size();
    sum_.resize(size);
    senders_.resize(size);
    for (int i = 0; i < kUpdates; ++i) {
      messages_.push_back(*codec_->Encode(RandomUpdate(size, &random)));
      std::vector<float> update(size);
      EXPECT_TRUE(codec_->AddDecoded(messages_.back(), 1.0f, absl::MakeSpan(update)).ok());
      for (int64_t k = 0; k < size; ++k) {
        sum_[k] += update[k];
        senders_[k] += update[k] != 0 ? 1.0f : 0.0f;
      }
    }
    views_.assign(messages_.begin(), messages_.end());
  }

  const std::unique_ptr<const Codec> codec_ =
      NewCodec(GetParam().first, GetParam().second, "fp32", MakeLayout({90000, 10, 60000}));
  std::vector<std::string> messages_;
  std::vector<absl::string_view> views_;
  std::vector<float> sum_, senders_;
};

TEST_P(ManyUpdates, AreSummedInTheirOrder) {
  std::vector<float> expected = sum_;
  for (float& value : expected) value *= 1.0f / kUpdates;
  for (int threads : {1, 2, 5}) {
    std::vector<float> average(sum_.size(), 99.0f);
    ASSERT_TRUE(AverageUpdates(*codec_, views_, {}, threads, absl::MakeSpan(average)).ok());
    EXPECT_TRUE(average == expected) << threads;
  }
}

TEST_P(ManyUpdates, AreImputedFromThoseWhoSentAnElement) {
  std::vector<float> expected = sum_;
  for (size_t k = 0; k < expected.size(); ++k) {
    const double factor = senders_[k] == 0 ? 1 : std::min(4.0, 1 + 0.75 * (kUpdates - senders_[k]) / senders_[k]);
    expected[k] = static_cast<float>(static_cast<double>(sum_[k] * (1.0f / kUpdates)) * factor);
  }
  for (int threads : {1, 2, 5}) {
    std::vector<float> step(sum_.size(), 99.0f);
    ASSERT_TRUE(ImputeUpdates(*codec_, views_, {}, 0.75f, threads, absl::MakeSpan(step)).ok());
    EXPECT_TRUE(step == expected) << threads;
    EXPECT_FALSE(step == sum_);
  }
}

TEST_P(ManyUpdates, NameTheOneThatDoesNotDecode) {
  const std::string cut = messages_[100].substr(0, messages_[100].size() / 2);
  views_[100] = cut;
  for (int threads : {1, 2, 5}) {
    std::vector<float> average(sum_.size());
    const absl::Status status = AverageUpdates(*codec_, views_, {}, threads, absl::MakeSpan(average));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("update 100")) << threads;
  }
}

TEST(AverageUpdates, NamesTheElementWhoseSumOverflows) {
  const auto codec = NewCodec("top_k", 0.01, "fp32", MakeLayout({90000, 60000}));
  std::vector<float> update(150000);
  update[100000] = 3e38f;
  const std::string message = *codec->Encode(update);
  std::vector<float> average(update.size());
  const absl::Status status = AverageUpdates(*codec, {message, message}, {}, 1, absl::MakeSpan(average));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensor 't1', index 10000: the sum of the updates overflows"));
  EXPECT_TRUE(AverageUpdates(*codec, {message}, {}, 1, absl::MakeSpan(average)).ok());
  EXPECT_EQ(average, update);
}

// Messages of some 200 bytes, which every thread reads from their beginning, and of 70,000, which are indexed.
INSTANTIATE_TEST_SUITE_P(OfAnySize, ManyUpdates,
                         ::testing::Values(std::make_pair("sbc", 0.001), std::make_pair("top_k", 0.1)));

}  // namespace
}  // namespace terse
