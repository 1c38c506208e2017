#include "compression/buffer_tail_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "compression/aggregate.h"
#include "compression/bit_stream.h"
#include "compression/dense.h"
#include "compression/downstream.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Parameters of 6 and 3 elements, buffers of 2 and 1.
Layout SmallLayout() { return MakeLayout({6, 3, 2, 1}, /*buffers=*/2); }

std::string Floats(absl::Span<const float> values) {
  std::string bytes;
  AppendFloats(values, &bytes);
  return bytes;
}

TEST(BufferTailCodec, PutsTheBuffersBehindTheParametersMessage) {
  const std::vector<float> update = {0.5, -4, 3, 0, 2.5, 1, 0, 0, 0, 0.125, -0.0f, 1e-40f};
  for (const char* name : {"sbc", "qsgd", "dense", "random_sparse"}) {
    const auto codec = NewCodec(name, 0.3, "fp32", SmallLayout());
    const auto parameters = NewCodec(name, 0.3, "fp32", MakeLayout({6, 3}));
    EXPECT_EQ(*codec->Encode(update),
              *parameters->Encode(absl::MakeSpan(update).subspan(0, 9)) + Floats(absl::MakeSpan(update).subspan(9)));
    EXPECT_EQ(codec->MaxMessageBytes(), parameters->MaxMessageBytes() + 12);
    EXPECT_EQ(codec->traits().carries_all, parameters->traits().carries_all);
  }
}

TEST(BufferTailCodec, NeverGroupsBuffersWithParameters) {
  CodecSpec spec = SparseSpec("top_k", 0.1);
  spec.grouping = "global";
  const auto codec = *MakeCodec(spec, SmallLayout());
  EXPECT_THAT(Decode(*codec, *codec->Encode({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 9, 10, 11, 12));
}

TEST(BufferTailCodec, HasNoSentPositionsInBuffers) {
  const auto codec = NewCodec("top_k", 0.3, "fp32", SmallLayout());
  const auto sent = *codec->SentPositions(*codec->Encode({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  ASSERT_TRUE(sent.has_value());
  EXPECT_THAT(*sent, ElementsAre(4, 5, 8));
}

// One rate a tensor of the model; those of buffers change nothing.
TEST(BufferTailCodec, TakesARateForEveryTensor) {
  const auto codec = NewCodec("dgc", 0.01, "fp32", SmallLayout());
  const std::vector<float> update = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const double rates[] = {0.5, 1.0, 0.001, 7};
  EncodeOptions options;
  options.rates = rates;
  EXPECT_THAT(Decode(*codec, *codec->Encode(update, options)), ElementsAre(0, 0, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  for (size_t count : {2, 3, 5}) {
    const std::vector<double> wrong(count, 0.5);
    options.rates = wrong;
    const std::string reason = absl::StrCat(count, " rates for 4 tensors");
    EXPECT_THAT(codec->Encode(update, options).status().ToString(), HasSubstr(reason));
    EXPECT_THAT(codec->CostBits(update, options).status().ToString(), HasSubstr(reason));
  }
}

TEST(BufferTailCodec, RefusesUpdatesThatDoNotFit) {
  const auto codec = NewCodec("adacomp", 0.3, "fp32", SmallLayout());
  const std::vector<float> update(12, 1.0f), shorter(9, 1.0f);
  EncodeOptions options;
  options.latest = shorter;
  EXPECT_THAT(codec->Encode(update, options).status().ToString(), HasSubstr("its latest part 9, the model 12"));
  EXPECT_THAT(codec->Encode(shorter).status().ToString(), HasSubstr("9 elements"));
  EXPECT_THAT(codec->CostBits(shorter).status().ToString(), HasSubstr("9 elements"));
  std::vector<float> delta = update;
  EXPECT_THAT(codec->AddAndEncode(shorter, absl::MakeSpan(delta)).status().ToString(), HasSubstr("residual has 9"));
}

TEST(BufferTailCodec, RefusesMessagesShorterThanTheBuffers) {
  const auto codec = NewCodec("sbc", 0.3, "fp32", SmallLayout());
  const std::string message = *codec->Encode(std::vector<float>(12, 1.0f));
  for (size_t size : {0, 1, 11, 12}) {
    EXPECT_THAT(
        codec->Validate(message.substr(message.size() - size)).ToString(),
        HasSubstr(absl::StrCat("sbc message of ", size, " bytes; it ends with the model's buffers, which take 12")));
  }
  EXPECT_THAT(codec->Validate(message.substr(message.size() - 13)).ToString(), HasSubstr("not a message of codec sbc"));
}

TEST(BufferTailCodec, RefusesNumbersThatAreNotFiniteInAMessage) {
  // A run of the cursor ends within the second buffer.
  const auto codec = NewCodec("sbc", 0.3, "fp32", MakeLayout({6, 300, 900}, /*buffers=*/2));
  const std::string message = *codec->Encode(std::vector<float>(1206, 1.0f));
  const struct {
    size_t element;
    const char* place;
  } cases[] = {{0, "'t1', index 0"}, {299, "'t1', index 299"}, {300, "'t2', index 0"}, {1199, "'t2', index 899"}};
  for (const auto& test : cases) {
    for (float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
      std::string broken = message;
      StoreLittle32(FloatBits(bad), &broken[message.size() - 4 * (1200 - test.element)]);
      EXPECT_THAT(codec->Validate(broken).ToString(), HasSubstr(absl::StrCat("sbc message, tensor ", test.place)));
    }
  }
}

// Three clients' statistics averaged as deltas to the common ones are the average of the statistics.
class BufferAverage : public ::testing::TestWithParam<std::string> {
 protected:
  // Every number is a small multiple of 1/8 and all weights are powers of 1/2, so nothing rounds.
  void Fill() {
    codec_ = NewCodec(GetParam(), 0.1, "fp32", MakeLayout({40, 70000, 35000, 600}, /*buffers=*/2));
    const int64_t size = codec_->layout().size();
    Random random(1);
    const auto statistics = [&] {
      std::vector<float> values(size);
      for (float& value : values) value = static_cast<float>(random.Below(1000)) / 8;
      return values;
    };
    common_ = statistics();
    expected_.assign(size, 0.0);
    for (size_t client = 0; client < samples_.size(); ++client) {
      const std::vector<float> own = statistics();
      std::vector<float> delta(size);
      for (int64_t i = 0; i < size; ++i) {
        delta[i] = own[i] - common_[i];
        expected_[i] += static_cast<double>(samples_[client]) / 8 * own[i];
      }
      messages_.push_back(*codec_->Encode(delta, {CodecKey{1, 1, client}}));
    }
  }

  void ExpectAverage(absl::Span<const float> weights, const std::string& what) const {
    const int64_t begin = codec_->layout().parameters();
    for (int64_t i = begin; i < codec_->layout().size(); ++i) {
      ASSERT_EQ(static_cast<double>(weights[i]), expected_[i]) << what << ", " << i;
    }
  }

  std::unique_ptr<const Codec> codec_;
  std::vector<int64_t> samples_ = {4, 1, 1, 2};
  std::vector<float> common_;
  std::vector<double> expected_;
  std::vector<std::string> messages_;
};

TEST_P(BufferAverage, IsTheArithmeticMeanOfTheClientsBuffers) {
  for (const bool weighted : {true, false}) {
    samples_ = weighted ? std::vector<int64_t>{4, 1, 1, 2} : std::vector<int64_t>{2, 2, 2, 2};
    messages_.clear();
    Fill();
    const std::vector<int64_t> samples = weighted ? samples_ : std::vector<int64_t>();
    const std::vector<absl::string_view> views(messages_.begin(), messages_.end());
    std::vector<float> first, average(common_.size());
    for (int threads : {1, 2, 5}) {
      ASSERT_TRUE(AverageUpdates(*codec_, views, AveragingWeights(samples), threads, absl::MakeSpan(average)).ok());
      if (first.empty()) first = average;
      EXPECT_EQ(std::memcmp(first.data(), average.data(), 4 * average.size()), 0) << threads;
    }
    for (const DownstreamMode mode : {DownstreamMode::kForward, DownstreamMode::kDense, DownstreamMode::kAuto}) {
      const std::string message = BuildDownstream(mode, views, samples, average);
      EXPECT_LE(static_cast<int64_t>(message.size()), MaxDownstreamBytes(*codec_, 4));
      std::vector<float> weights = common_, scratch;
      ASSERT_EQ(ApplyDownstream(*codec_, message, &scratch, absl::MakeSpan(weights)), absl::OkStatus());
      ExpectAverage(weights, absl::StrCat(static_cast<int>(mode), weighted ? ", weighted" : ", plain"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, BufferAverage, ::testing::ValuesIn(CodecNames()),
                         [](const ::testing::TestParamInfo<std::string>& info) { return info.param; });

// A directory of places leads into the buffers too.
TEST(BufferTailCodec, IsEnteredAnywhere) {
  const auto codec = NewCodec("stc", 0.1, "fp32", MakeLayout({40, 3000, 2000, 600}, /*buffers=*/2));
  Random random(3);
  const std::string message = *codec->Encode(RandomUpdate(codec->layout().size(), &random));
  const std::vector<float> whole = Decode(*codec, message);
  for (int64_t spacing : {1000, 3040, 5639, 5640}) {
    const auto index = UpdateIndex::Build(*codec, message, spacing);
    ASSERT_TRUE(index.ok()) << index.status();
    for (int64_t position : {0, 39, 3039, 3040, 3041, 4500, 5639}) {
      std::vector<float> values(whole.size());
      const auto cursor = index->Before(position);
      DecodedRun run;
      while (cursor->Next(codec->layout().size(), &run).ok() && run.count > 0) AddRun(run, 1.0f, 0, values.data());
      EXPECT_EQ(std::memcmp(&values[position], &whole[position], 4 * (whole.size() - position)), 0) << position;
    }
  }
}

TEST(BufferTailCodec, IsNotThereWithoutBuffers) {
  const auto codec = NewCodec("dense", 1, "fp32", MakeLayout({6, 3}));
  EXPECT_EQ(dynamic_cast<const BufferTailCodec*>(codec.get()), nullptr);
  const auto with = NewCodec("dense", 1, "fp32", SmallLayout());
  EXPECT_NE(dynamic_cast<const BufferTailCodec*>(with.get()), nullptr);
}

}  // namespace
}  // namespace terse
