#include "compression/downstream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "compression/aggregate.h"
#include "compression/bit_stream.h"
#include "compression/dense.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Downstream : public ::testing::Test {
 protected:
  // Messages of `count` random updates, from clients with so many samples each or weighted alike.
  void Fill(const std::string& codec_name, double density, int count, bool weighted = false) {
    messages_.clear();
    samples_.clear();
    total_ = 0;
    trust_ = 0;
    codec_ = NewCodec(codec_name, density, "fp32", MakeLayout({7, 300, 20}));
    Random random(count);
    const int64_t size = codec_->layout().size();
    for (int i = 0; i < count; ++i) {
      messages_.push_back(*codec_->Encode(RandomUpdate(size, &random)));
      if (weighted) samples_.push_back(int64_t{1} << (i % 24));
    }
    views_.assign(messages_.begin(), messages_.end());
    average_.resize(codec_->layout().size());
    ASSERT_TRUE(AverageUpdates(*codec_, views_, AveragingWeights(samples_), 1, absl::MakeSpan(average_)).ok());
  }

  // Fills the message likewise, with weights that are shares of more than all samples.
  void FillShares(const std::string& codec_name, double density, int count) {
    Fill(codec_name, density, count, /*weighted=*/true);
    total_ = int64_t{1} << 40;
    ASSERT_TRUE(AverageUpdates(*codec_, views_, AveragingWeights(samples_, total_), 1, absl::MakeSpan(average_)).ok());
  }

  // Makes the round that Fill made one whose silence is filled in.
  void Impute(float trust) {
    trust_ = trust;
    ASSERT_TRUE(
        ImputeUpdates(*codec_, views_, AveragingWeights(samples_, total_), trust, 1, absl::MakeSpan(average_)).ok());
  }

  std::string Build(DownstreamMode mode) const {
    return BuildDownstream(mode, views_, samples_, average_, total_, trust_);
  }

  // The six forms of a message of `count` updates.
  std::vector<std::string> Forms(const std::string& codec_name, int count) {
    Fill(codec_name, 0.05, count);
    const std::string forward = Build(DownstreamMode::kForward), dense = Build(DownstreamMode::kDense);
    const std::string sparse = BuildStepDownstream(DownstreamMode::kAuto, average_);
    EXPECT_EQ(sparse[0], '\x89');
    Fill(codec_name, 0.05, count, true);
    const std::string weighted = Build(DownstreamMode::kForward);
    FillShares(codec_name, 0.05, count);
    const std::string shares = Build(DownstreamMode::kForward);
    Impute(0.5f);
    return {forward, dense, sparse, weighted, shares, Build(DownstreamMode::kForward)};
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
  std::vector<int64_t> samples_;
  int64_t total_ = 0;
  float trust_ = 0;
  std::vector<float> average_;
};

TEST_F(Downstream, AllExactFormsGiveTheSameWeights) {
  const auto check = [&](const std::string& what) {
    const std::string forward = Build(DownstreamMode::kForward), dense = Build(DownstreamMode::kDense);
    const std::string any = Build(DownstreamMode::kAuto), step = BuildStepDownstream(DownstreamMode::kAuto, average_);
    const std::vector<float> expected = Apply(forward);
    for (const std::string& message : {dense, any, step}) {
      const std::vector<float> weights = Apply(message);
      EXPECT_EQ(std::memcmp(weights.data(), expected.data(), 4 * expected.size()), 0) << what;
    }
    EXPECT_EQ(any.size(), std::min(forward.size(), step.size())) << what;
    EXPECT_LE(step.size(), dense.size()) << what;
    EXPECT_EQ(IsStepDownstream(step) && IsStepDownstream(dense) && !IsStepDownstream(forward), true) << what;
  };
  for (const std::string& name : CodecNames()) {
    for (int count : {1, 3, 7, 150}) {
      const std::string what = absl::StrCat(name, " of ", count);
      Fill(name, 0.05, count);
      check(what);
      Impute(0.625f);
      check(absl::StrCat(what, ", imputed"));
      Fill(name, 0.05, count, /*weighted=*/true);
      check(absl::StrCat(what, ", weighted"));
      Impute(1);
      check(absl::StrCat(what, ", weighted and imputed"));
      FillShares(name, 0.05, count);
      check(absl::StrCat(what, ", shares"));
    }
  }
}

TEST_F(Downstream, ForwardCarriesUpdatesSamplesTotalAndTrust) {
  const auto check = [&] {
    const std::string message = Build(DownstreamMode::kForward);
    const auto forwarded = ParseForwarded(message);
    ASSERT_TRUE(forwarded.ok()) << forwarded.status();
    EXPECT_EQ(forwarded->updates, views_);
    EXPECT_EQ(forwarded->samples, samples_);
    EXPECT_EQ(forwarded->total, total_);
    EXPECT_EQ(forwarded->trust, trust_);
  };
  for (bool weighted : {false, true}) {
    Fill("sbc", 0.05, 40, weighted);
    check();
  }
  FillShares("sbc", 0.05, 40);
  check();
  Impute(0x1p-149f);
  check();
  EXPECT_EQ(ParseForwarded(Build(DownstreamMode::kDense)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseForwarded("").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(AveragingWeights, AreSharesOfTheSamples) {
  EXPECT_THAT(AveragingWeights({}), ElementsAre());
  EXPECT_THAT(AveragingWeights({12}), ElementsAre(1.0f));
  EXPECT_THAT(AveragingWeights({3, 1}), ElementsAre(0.75f, 0.25f));
  EXPECT_THAT(AveragingWeights({3, 1}, 8), ElementsAre(0.375f, 0.125f));
  // The nearest floats to the quotients: what dividing in float32 would not give.
  EXPECT_THAT(AveragingWeights({16777217, 16777219}),
              ElementsAre(static_cast<float>(16777217.0 / 33554436.0), static_cast<float>(16777219.0 / 33554436.0)));
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(AveragingWeights({most - 1, 1}), ElementsAre(1.0f, 0x1p-63f));
}

TEST_F(Downstream, WeightedAverageIsTheSumInOrder) {
  codec_ = NewCodec("dense", 1, "fp32", MakeLayout({2}));
  const std::string a = *codec_->Encode({8, 1e8}), b = *codec_->Encode({16, 16}), c = *codec_->Encode({24, -1e8});
  std::vector<float> average(2, 99.0f);
  const std::vector<float> weights = AveragingWeights({1, 2, 1});
  ASSERT_TRUE(AverageUpdates(*codec_, {a, b, c}, weights, 1, absl::MakeSpan(average)).ok());
  EXPECT_THAT(average, ElementsAre(16.0f, 8.0f));
  const std::vector<float> thirds = AveragingWeights({1, 1, 1});
  ASSERT_TRUE(AverageUpdates(*codec_, {a, b, c}, thirds, 1, absl::MakeSpan(average)).ok());
  const float third = 1.0f / 3.0f;
  const float first = third * 1e8f, second = third * 16, last = third * -1e8f;
  EXPECT_EQ(average[1], (first + second) + last);
}

TEST_F(Downstream, AverageIsTheScaledSumInOrder) {
  codec_ = NewCodec("dense", 1, "fp32", MakeLayout({2}));
  const std::string a = *codec_->Encode({1, 1e8}), b = *codec_->Encode({2, 1}), c = *codec_->Encode({3, -1e8});
  std::vector<float> average(2, 99.0f);
  ASSERT_TRUE(AverageUpdates(*codec_, {a, b, c}, {}, 1, absl::MakeSpan(average)).ok());
  EXPECT_THAT(average, ElementsAre(6.0f * (1.0f / 3.0f), 0.0f));
}

TEST_F(Downstream, AverageNamesWhatIsWrong) {
  Fill("sbc", 0.05, 2);
  std::vector<float> average(average_.size());
  EXPECT_EQ(AverageUpdates(*codec_, {}, {}, 1, absl::MakeSpan(average)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AverageUpdates(*codec_, views_, {}, 1, absl::MakeSpan(average).subspan(1)).code(),
            absl::StatusCode::kInvalidArgument);
  for (const std::vector<float>& weights : {std::vector<float>{1}, std::vector<float>{1, 1, 1}}) {
    for (int threads : {1, 2}) {
      EXPECT_THAT(std::string(AverageUpdates(*codec_, views_, weights, threads, absl::MakeSpan(average)).message()),
                  HasSubstr(absl::StrCat(weights.size(), " weights for 2 updates")));
    }
  }
  EXPECT_THAT(std::string(AverageUpdates(*codec_, {views_[0], "x"}, {}, 1, absl::MakeSpan(average)).message()),
              HasSubstr("update 1"));
  const std::vector<float> huge(average.size(), std::numeric_limits<float>::max());
  const std::string message = *codec_->Encode(huge);
  EXPECT_THAT(std::string(AverageUpdates(*codec_, {message, message}, {}, 1, absl::MakeSpan(average)).message()),
              HasSubstr("tensor 't0', index 0: the sum of the updates overflows"));
}

TEST_F(Downstream, AutoTakesTheShortest) {
  for (bool weighted : {false, true}) {
    Fill("sbc", 0.05, 2, weighted);
    EXPECT_EQ(Build(DownstreamMode::kAuto), Build(DownstreamMode::kForward));
    // Many updates of all elements: their average takes less than they do, and its octaves less than float32.
    Fill("fp16", 1, 20, weighted);
    EXPECT_EQ(Build(DownstreamMode::kAuto)[0], '\x89');
    EXPECT_LT(Build(DownstreamMode::kAuto).size(), 0.95 * Build(DownstreamMode::kDense).size());
  }
  // A few values of any size are best as they are.
  codec_ = NewCodec("dense", 1, "fp32", MakeLayout({3}));
  const std::string update = *codec_->Encode({1e-30f, -3e8f, 0.25f});
  EXPECT_EQ(BuildDownstream(DownstreamMode::kAuto, {update, update}, {}, {1e-30f, -3e8f, 0.25f})[0], '\x82');
}

TEST_F(Downstream, AutoCountsTheBytesOfTheSamples) {
  codec_ = NewCodec("dense", 1, "fp32", MakeLayout({3}));
  const std::vector<float> average = {1e-30f, -3e8f, 0.25f};
  const std::string update = *codec_->Encode(average);
  const std::string shorter = update.substr(0, update.size() - 3);  // only its length matters here
  EXPECT_EQ(BuildDownstream(DownstreamMode::kAuto, {shorter}, {}, average)[0], '\x81');
  EXPECT_EQ(BuildDownstream(DownstreamMode::kAuto, {shorter}, {5}, average)[0], '\x82');
  const std::string shortest = update.substr(0, update.size() - 4);
  EXPECT_EQ(BuildDownstream(DownstreamMode::kAuto, {shortest}, {5}, average)[0], '\x83');
  EXPECT_EQ(BuildDownstream(DownstreamMode::kAuto, {shortest}, {5}, average, 6)[0], '\x82');
}

TEST_F(Downstream, AStepThatLosesToDenseIsNotSparse) {
  Fill("sbc", 0.05, 1);
  EXPECT_EQ(BuildStepDownstream(DownstreamMode::kDense, average_), BuildDenseDownstream(average_));
  EXPECT_EQ(BuildStepDownstream(DownstreamMode::kAuto, average_)[0], '\x89');
  // A sparse step of as many bytes as a dense one is none that is ever made.
  std::string sparse = BuildStepDownstream(DownstreamMode::kAuto, average_);
  sparse.resize(BuildDenseDownstream(average_).size());
  EXPECT_THAT(Refusal(sparse), HasSubstr("longer than a dense one"));
}

// An element that no update names is +0 on both sides, which takes a weight of -0 to +0; an average of -0 keeps it.
TEST_F(Downstream, SparseStepsTreatNegativeZerosAsTheCoordinatorDoes) {
  Fill("sbc", 0.05, 3);
  average_[0] = -0.0f;
  average_[1] = 0.0f;
  const std::string message = BuildStepDownstream(DownstreamMode::kAuto, average_);
  ASSERT_EQ(message[0], '\x89');
  std::vector<float> weights(average_.size(), -0.0f), scratch;
  ASSERT_TRUE(ApplyDownstream(*codec_, message, &scratch, absl::MakeSpan(weights)).ok());
  for (size_t i = 0; i < weights.size(); ++i) ASSERT_EQ(FloatBits(weights[i]), FloatBits(-0.0f + average_[i])) << i;
  EXPECT_EQ(FloatBits(weights[0]), FloatBits(-0.0f));
  EXPECT_EQ(FloatBits(weights[1]), FloatBits(0.0f));
}

TEST_F(Downstream, TheLongestMessageIsAllowedAndNoLonger) {
  for (const char* name : {"dense", "sbc", "fp16"}) {
    Fill(name, 1, 3);
    const std::string longest(codec_->MaxMessageBytes(), 'x');
    const std::vector<absl::string_view> updates = {longest, longest, longest};
    const int64_t all = std::numeric_limits<int64_t>::max(), most = all / 3;
    const std::string forward =
        BuildDownstream(DownstreamMode::kForward, updates, {most, most, most}, average_, /*total=*/all, /*trust=*/1);
    EXPECT_TRUE(ParseForwarded(forward).ok());
    const size_t dense = Build(DownstreamMode::kDense).size();
    EXPECT_EQ(static_cast<int64_t>(std::max(forward.size(), dense)), MaxDownstreamBytes(*codec_, 3)) << name;
  }
}

TEST_F(Downstream, CodedMovesWhatTheCodecCarries) {
  Fill("dense", 0.05, 1);
  for (const std::string& name : CodecNames()) {
    const std::unique_ptr<const Codec> coded = NewCodec(name, 0.05, "fp32", codec_->layout());
    const std::string inner = *coded->Encode(average_);
    const std::string message = BuildCodedDownstream(inner);
    std::vector<float> expected(average_.size(), 0.0f), weights(average_.size(), 0.1f), scratch;
    ASSERT_TRUE(coded->AddDecoded(inner, 1.0f, absl::MakeSpan(expected)).ok());
    ASSERT_TRUE(ApplyDownstream({*codec_, coded.get()}, message, &scratch, absl::MakeSpan(weights)).ok()) << name;
    EXPECT_EQ(scratch, expected) << name;
    for (size_t i = 0; i < weights.size(); ++i) ASSERT_EQ(weights[i], 0.1f + expected[i]) << name;
    EXPECT_LE(static_cast<int64_t>(message.size()), MaxDownstreamBytes({*codec_, coded.get()}, 1)) << name;

    EXPECT_THAT(Refusal(message), HasSubstr("known format")) << "without a coded mode it is none";
    for (size_t length = 0; length < message.size(); ++length) {
      std::vector<float> untouched(average_.size(), 0.1f);
      const absl::Status status =
          ApplyDownstream({*codec_, coded.get()}, message.substr(0, length), &scratch, absl::MakeSpan(untouched));
      ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name << " " << length;
      ASSERT_THAT(untouched, Each(0.1f));
    }
  }
}

TEST_F(Downstream, RefusesTruncationTrailingBytesAndUnknownForms) {
  for (const std::string& message : Forms("sbc", 3)) {
    for (size_t size = 0; size < message.size(); ++size) Refusal(message.substr(0, size));
    Refusal(message + std::string(1, '\0'));
    Refusal("\x84" + message.substr(1));
    Refusal("\x80" + message.substr(1));
  }
}

TEST_F(Downstream, RefusesBadCountsAndLengths) {
  Fill("sbc", 0.05, 2);
  EXPECT_THAT(Refusal(std::string("\x81\0", 2)), HasSubstr("number of updates"));
  EXPECT_THAT(Refusal(std::string("\x81\xff\xff\xff\xff\x0f\x01\x01", 8)), HasSubstr("number of updates"));
  EXPECT_THAT(Refusal("\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), HasSubstr("number of updates"));
  EXPECT_THAT(Refusal(std::string("\x81\x01\x00\x00", 4)), HasSubstr("ends in update 0"));
  // The same message with its count written in two bytes.
  const std::string forward = Build(DownstreamMode::kForward);
  EXPECT_THAT(Refusal(std::string("\x81\x82\0", 3) + forward.substr(2)), HasSubstr("number of updates"));
}

TEST_F(Downstream, RefusesBadSamples) {
  Fill("sbc", 0.05, 2);
  const auto one = [&](const std::string& samples, int i) {
    return absl::StrCat(samples, std::string(1, static_cast<char>(messages_[i].size())), messages_[i]);
  };
  const auto both = [&](const std::string& first, const std::string& second) {
    return absl::StrCat("\x83\x02", one(first, 0), one(second, 1));
  };
  ASSERT_LT(messages_[0].size(), 128);
  ASSERT_LT(messages_[1].size(), 128);
  const std::string most = std::string(8, '\xff') + "\x7f";  // 2^63 - 1
  const std::string one_less = "\xfe" + most.substr(1);
  EXPECT_TRUE(ParseForwarded(both("\x03", "\x01")).ok());
  EXPECT_TRUE(ParseForwarded(both(one_less, "\x01")).ok());
  EXPECT_THAT(Refusal(both(std::string(1, '\0'), "\x01")), HasSubstr("number of samples in update 0"));
  EXPECT_THAT(Refusal(both("\x01", std::string(1, '\0'))), HasSubstr("number of samples in update 1"));
  EXPECT_THAT(Refusal(both(most, "\x01")), HasSubstr("number of samples in update 1"));
  EXPECT_THAT(Refusal(both(most, most)), HasSubstr("number of samples in update 1"));
  EXPECT_THAT(Refusal(both(std::string(9, '\xff') + "\x01", "\x01")), HasSubstr("ends in update 0"));  // above 2^63
  EXPECT_THAT(Refusal(both(std::string("\x81\0", 2), "\x01")), HasSubstr("ends in update 0"));         // 1 in two bytes
  // Three updates of two bytes cannot be three weighted updates.
  EXPECT_THAT(Refusal("\x83\x03\x01\x01\x01\x01\x01\x01"), HasSubstr("number of updates"));
}

TEST_F(Downstream, RefusesBadTotals) {
  Fill("sbc", 0.05, 1);
  const auto of = [&](const std::string& total, const std::string& samples) {
    return absl::StrCat("\x85\x01", total, samples, std::string(1, static_cast<char>(messages_[0].size())),
                        messages_[0]);
  };
  EXPECT_TRUE(ParseForwarded(of("\x05", "\x04")).ok());
  EXPECT_THAT(Refusal(of("\x04", "\x04")), HasSubstr("fewer shares"));  // all of it: the other form
  EXPECT_THAT(Refusal(of("\x03", "\x04")), HasSubstr("fewer shares"));
  EXPECT_THAT(Refusal(of(std::string(1, '\0'), "\x04")), HasSubstr("number of shares"));
  EXPECT_THAT(Refusal(of(std::string(9, '\xff') + "\x01", "\x04")), HasSubstr("number of shares"));  // above 2^63
}

TEST_F(Downstream, RefusesBadTrust) {
  Fill("sbc", 0.05, 2);
  const std::string forward = Build(DownstreamMode::kForward);
  const auto with = [&](float trust, const std::string& within) {
    std::string message = "\x8a";
    AppendFloats({trust}, &message);
    return message + within;
  };
  EXPECT_TRUE(ParseForwarded(with(1, forward)).ok());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float trust : {0.0f, -0.5f, 1.0000001f, nan}) {
    EXPECT_THAT(Refusal(with(trust, forward)), HasSubstr("unusable trust")) << trust;
  }
  EXPECT_THAT(Refusal(with(1, "")), HasSubstr("unusable trust"));
  EXPECT_THAT(Refusal(with(1, with(1, forward))), HasSubstr("unusable trust")) << "one within the other";
  EXPECT_THAT(Refusal(with(1, Build(DownstreamMode::kDense))), HasSubstr("not a forward message"));
}

TEST_F(Downstream, RefusesOrBoundsEverySingleByteCorruption) {
  for (const std::string& message : Forms("sbc", 2)) {
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
  EXPECT_THAT(Refusal(Build(DownstreamMode::kDense)), HasSubstr("tensor 't1', index 1"));
}

TEST_F(Downstream, RefusesWeightsOfAnotherSize) {
  Fill("sbc", 0.05, 1);
  std::vector<float> weights(3), scratch;
  EXPECT_EQ(ApplyDownstream(*codec_, Build(DownstreamMode::kForward), &scratch, absl::MakeSpan(weights)).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace terse
