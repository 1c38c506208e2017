// Tests that every row of the codec table keeps the contract of Codec, whatever part of an update it sends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compression/aggregate.h"
#include "compression/bit_stream.h"
#include "compression/simd.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

const std::vector<int64_t>& Sizes() {
  static const auto* const sizes = new std::vector<int64_t>{1, 30, 2, 300, 17};
  return *sizes;
}

std::vector<uint32_t> Bits(absl::Span<const float> values) {
  std::vector<uint32_t> bits;
  for (float value : values) bits.push_back(FloatBits(value));
  return bits;
}

class CodecConformance : public ::testing::TestWithParam<CodecCase> {
 protected:
  // In a case with buffers half of the tensors, rounded down, are some.
  std::unique_ptr<const Codec> New(const std::vector<int64_t>& sizes) const {
    auto codec = MakeCodec(GetParam().spec, MakeLayout(sizes, GetParam().buffers ? sizes.size() / 2 : 0));
    EXPECT_TRUE(codec.ok()) << codec.status();
    return *std::move(codec);
  }

  // The promises about one good message.
  void ExpectGood(const Codec& codec, absl::Span<const float> update) const {
    EncodeOptions options;
    options.key = {7, 8, 9};
    const auto message = codec.Encode(update, options);
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_EQ(message, codec.Encode(update, options)) << "not deterministic";
    EXPECT_LE(static_cast<int64_t>(message->size()), codec.MaxMessageBytes());
    ASSERT_FALSE(message->empty());
    const auto cost = codec.CostBits(update, options);
    ASSERT_TRUE(cost.ok()) << cost.status();
    EXPECT_EQ(static_cast<int64_t>(message->size()), 1 + (*cost + 7) / 8);
    ASSERT_EQ(codec.Validate(*message), absl::OkStatus());
    if (codec.traits().lossless) {
      EXPECT_EQ(Decode(codec, *message), std::vector<float>(update.begin(), update.end()));
    }
    ExpectBuffersWhole(codec, update, *message);
    ExpectConsistent(codec, *message);
    ExpectKept(codec, update, *message);
  }

  // A scratch adds the same bits as decoding its latest message does.
  void ExpectKept(const Codec& codec, absl::Span<const float> update, const std::string& message) const {
    const std::unique_ptr<EncodeScratch> scratch = codec.NewScratch();
    std::vector<float> kept(update.size(), 0.75f), decoded = kept;
    const auto add = [&] { return codec.AddEncoded(*scratch, -1.0f, absl::MakeSpan(kept)); };
    EXPECT_FALSE(add()) << "nothing was encoded yet";
    EncodeOptions options;
    options.key = {7, 8, 9};
    options.scratch = scratch.get();
    // A message before it leaves nothing behind.
    ASSERT_TRUE(codec.Encode(std::vector<float>(update.size(), 1.5f), options).ok());
    ASSERT_EQ(*codec.Encode(update, options), message);
    ASSERT_EQ(add(), Keeps(codec));
    if (!Keeps(codec)) return;
    ASSERT_TRUE(codec.AddDecoded(message, -1.0f, absl::MakeSpan(decoded)).ok());
    const size_t parameters = static_cast<size_t>(codec.layout().parameters());
    EXPECT_EQ(Bits(absl::MakeSpan(kept).subspan(0, parameters)), Bits(absl::MakeSpan(decoded).subspan(0, parameters)));
  }

  // Whether a scratch of the codec keeps what was sent: sparse codecs do, unless grouping moves tensors.
  bool Keeps(const Codec& codec) const {
    const Layout* const packed = codec.PackedLayout();
    if (packed == nullptr) return false;
    return packed->tensors().size() == 1 || packed->tensors()[0].name == codec.layout().tensors()[0].name;
  }

  // Every bit of the buffers, whatever the codec does to parameters.
  void ExpectBuffersWhole(const Codec& codec, absl::Span<const float> update, const std::string& message) const {
    auto cursor = *codec.Open(message);
    DecodedRun run;
    int64_t next = codec.layout().parameters();
    while (cursor->Next(codec.layout().size(), &run).ok() && run.count > 0) {
      if (run.positions != nullptr || run.begin < codec.layout().parameters()) continue;
      ASSERT_EQ(run.begin, next);
      EXPECT_EQ(Bits(absl::MakeConstSpan(run.values, run.count)), Bits(update.subspan(next, run.count)));
      next += run.count;
    }
    EXPECT_EQ(next, codec.layout().size());
  }

  // Positions, values and both signs of a message that decodes agree.
  void ExpectConsistent(const Codec& codec, const std::string& message) const {
    const std::vector<float> values = Decode(codec, message);
    ASSERT_EQ(static_cast<int64_t>(values.size()), codec.layout().size());
    std::vector<float> back = values;
    ASSERT_TRUE(codec.AddDecoded(message, -1.0f, absl::MakeSpan(back)).ok());
    for (float value : back) EXPECT_EQ(value, 0);
    for (float value : values) ASSERT_TRUE(std::isfinite(value));
    double squares = 0;
    float largest = 0;
    for (int64_t i = 0; i < codec.layout().size(); ++i) {
      if (i < codec.layout().parameters()) squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      largest = std::max(largest, std::abs(values[i]));
    }
    const auto size = codec.Measure(message);
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_NEAR(size->norm, std::sqrt(squares), 1e-9 * std::sqrt(squares));
    EXPECT_EQ(size->largest, largest);
    const auto sent = codec.SentPositions(message);
    ASSERT_TRUE(sent.ok());
    ASSERT_EQ(sent->has_value(), !codec.traits().carries_all);
    if (!sent->has_value()) return;
    EXPECT_TRUE(std::is_sorted((*sent)->begin(), (*sent)->end(), std::less_equal<uint32_t>()));
    std::vector<bool> is_sent(values.size());
    for (uint32_t position : **sent) is_sent.at(position) = true;
    for (int64_t i = 0; i < codec.layout().size(); ++i) {
      EXPECT_TRUE(i < codec.layout().parameters() ? is_sent[i] || values[i] == 0 : !is_sent[i]) << i;
    }
  }

  // Either refused by all of the decoder's methods, or decoded within bounds by all of them.
  void ExpectRefusedOrConsistent(const Codec& codec, const std::string& message) const {
    const absl::Status status = codec.Validate(message);
    if (status.ok()) return ExpectConsistent(codec, message);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    std::vector<float> values(codec.layout().size());
    EXPECT_EQ(codec.AddDecoded(message, 1.0f, absl::MakeSpan(values)), status);
    EXPECT_EQ(codec.SentPositions(message).status(), status);
    EXPECT_EQ(codec.Measure(message).status(), status);
  }
};

TEST_P(CodecConformance, KeepsItsNameAndLayout) {
  const auto codec = New(Sizes());
  EXPECT_EQ(codec->name(), GetParam().spec.name);
  EXPECT_EQ(codec->layout().size(), 350);
}

TEST_P(CodecConformance, CodesEveryKindOfUpdate) {
  const auto codec = New(Sizes());
  const int64_t size = codec->layout().size();
  Random random(1);
  for (int i = 0; i < 20; ++i) ExpectGood(*codec, RandomUpdate(size, &random));
  ExpectGood(*codec, std::vector<float>(size, 0.0f));
  ExpectGood(*codec, std::vector<float>(size, -0.0f));
  for (float constant : {1.0f, -0.001f, std::numeric_limits<float>::denorm_min(), -std::numeric_limits<float>::min(),
                         std::numeric_limits<float>::max(), -std::numeric_limits<float>::max()}) {
    ExpectGood(*codec, std::vector<float>(size, constant));
    std::vector<float> one(size, 0.0f);
    one[200] = constant;
    ExpectGood(*codec, one);
  }
  for (int64_t last : {0, 30, 349}) {
    std::vector<float> one(size, 0.0f);
    one[last] = 1;
    ExpectGood(*codec, one);
  }
  std::vector<float> ties(size);
  for (float& value : ties) value = random.Below(2) == 0 ? 0.25f : -0.25f;
  ExpectGood(*codec, ties);
  std::vector<float> denormal(size);
  for (float& value : denormal) value = FloatFromBits(static_cast<uint32_t>(random.Below(0x800000)));
  ExpectGood(*codec, denormal);
}

// So many that they are decoded in several runs.
TEST_P(CodecConformance, KeepsManyElementsInItsScratch) {
  const auto codec = New({30, 4000, 2});
  Random random(2);
  const std::vector<float> update = RandomUpdate(codec->layout().size(), &random);
  EncodeOptions options;
  options.key = {7, 8, 9};
  ExpectKept(*codec, update, *codec->Encode(update, options));
}

TEST_P(CodecConformance, CodesAModelOfOneElement) {
  const auto codec = New({1});
  for (float value : {0.0f, 3.0f, -4.0f}) ExpectGood(*codec, {value});
}

TEST_P(CodecConformance, AddsTheResidualAsEncodeWould) {
  const auto codec = New({40000, 3, 40});
  const int64_t size = codec->layout().size();
  Random random(6);
  EncodeOptions options;
  options.key = {1, 2, 3};
  for (int i = 0; i < 3; ++i) {
    const std::vector<float> residual = RandomUpdate(size, &random);
    std::vector<float> delta = RandomUpdate(size, &random, 0.1);
    const std::vector<float> latest = delta;
    std::vector<float> sum(size);
    for (int64_t j = 0; j < size; ++j) sum[j] = residual[j] + delta[j];
    options.latest = latest;
    const auto message = codec->AddAndEncode(residual, absl::MakeSpan(delta), options);
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_EQ(Bits(delta), Bits(sum));
    EXPECT_EQ(message, codec->Encode(sum, options));
  }
}

TEST_P(CodecConformance, GivesTheSameBitsOnEverySimdTarget) {
  const auto codec = New({70000, 300, 9001});
  Random random(7);
  const std::vector<float> update = RandomUpdate(codec->layout().size(), &random);
  std::string first;
  std::vector<uint32_t> first_decoded;
  for (const std::string& target : SimdTargets()) {
    ASSERT_TRUE(UseSimdTarget(target).ok());
    const auto message = codec->Encode(update);
    ASSERT_TRUE(message.ok()) << message.status();
    const std::vector<uint32_t> decoded = Bits(Decode(*codec, *message));
    if (first.empty()) {
      first = *message;
      first_decoded = decoded;
    }
    EXPECT_TRUE(*message == first) << target;
    EXPECT_TRUE(decoded == first_decoded) << target;
  }
  ASSERT_TRUE(UseSimdTarget("").ok());
}

TEST_P(CodecConformance, DependsOnTheKeyExactlyWhenStochastic) {
  const auto codec = New({500, 3});
  Random random(8);
  const std::vector<float> update = RandomUpdate(codec->layout().size(), &random);
  const CodecKey keys[] = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}};
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(codec->Encode(update, {keys[0]}) != codec->Encode(update, {keys[i]}), codec->traits().stochastic) << i;
  }
}

// The mean over many keys is the update, within five standard errors of each element. Where an element is rarely sent
// its sample variance says little; then that of a value that is 0 or the largest decoded one stands in.
TEST_P(CodecConformance, IsUnbiasedIfItSaysSo) {
  const auto codec = New({60, 5});
  if (!codec->traits().unbiased) return;
  const int64_t size = codec->layout().size();
  Random random(9);
  const std::vector<float> update = RandomUpdate(size, &random);
  constexpr int kKeys = 4000;
  std::vector<double> sum(size), squares(size);
  double largest = 0;
  for (uint64_t key = 0; key < kKeys; ++key) {
    const std::vector<float> decoded = Decode(*codec, *codec->Encode(update, {CodecKey{1, key, 3}}));
    for (int64_t i = 0; i < size; ++i) {
      sum[i] += decoded[i];
      squares[i] += static_cast<double>(decoded[i]) * decoded[i];
      largest = std::max(largest, std::fabs(static_cast<double>(decoded[i])));
    }
  }
  for (int64_t i = 0; i < size; ++i) {
    const double mean = sum[i] / kKeys;
    const double rare = std::min(std::fabs(update[i]) * largest, largest * 20 / kKeys * largest);
    const double error = std::sqrt(std::max(rare, squares[i] / kKeys - mean * mean) / kKeys);
    EXPECT_NEAR(mean, update[i], 5 * error + 1e-6) << i;
  }
}

TEST_P(CodecConformance, RefusesUpdatesItCannotCode) {
  const auto codec = New(Sizes());
  const std::vector<float> update(codec->layout().size(), 0.5f);
  EXPECT_EQ(codec->Encode(absl::MakeSpan(update).subspan(1)).status().code(), absl::StatusCode::kInvalidArgument);
  for (float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> broken = update;
    broken[33 + 42] = bad;
    EXPECT_THAT(codec->Encode(broken).status().ToString(), HasSubstr("tensor 't3', index 42"));
    EXPECT_THAT(codec->CostBits(broken).status().ToString(), HasSubstr("tensor 't3', index 42"));
    std::vector<float> delta = broken;
    EXPECT_THAT(codec->AddAndEncode(update, absl::MakeSpan(delta)).status().ToString(),
                HasSubstr("tensor 't3', index 42"));
  }
}

TEST_P(CodecConformance, RefusesAnAccumulatorOfAnotherSize) {
  const auto codec = New(Sizes());
  const std::string message = *codec->Encode(std::vector<float>(codec->layout().size(), 1.0f));
  std::vector<float> values(codec->layout().size() - 1);
  EXPECT_EQ(codec->AddDecoded(message, 1.0f, absl::MakeSpan(values)).code(), absl::StatusCode::kInvalidArgument);
}

// Cursors that stop at any limit, and clones of them, read what a whole decoding reads.
TEST_P(CodecConformance, ReadsInAnyPieces) {
  const auto codec = New({3000, 1, 200, 90});
  const int64_t size = codec->layout().size();
  Random random(10);
  const std::string message = *codec->Encode(RandomUpdate(size, &random));
  const std::vector<float> whole = Decode(*codec, message);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<float> values(size);
    auto cursor = *codec->Open(message);
    DecodedRun run;
    for (int64_t limit = 0; limit < size;) {
      limit = std::min<int64_t>(size, limit + random.Below(trial % 2 == 0 ? 100 : 2000));
      if (random.Below(3) == 0) cursor = cursor->Clone();
      do {
        run.common = true;  // as a run of another codec may have left it
        ASSERT_EQ(cursor->Next(limit, &run), absl::OkStatus());
        if (run.count > 0) {
          ASSERT_LT(run.PositionOf(run.count - 1), limit);
        }
        ASSERT_LE(run.count, kDecodedRun);
        AddRun(run, 1.0f, 0, values.data());
      } while (run.count > 0);
    }
    ASSERT_TRUE(values == whole);
  }
}

// The sanitizer looks for races alone, which are there with three threads and a few blocks too, and takes ten times as
// long.
#ifdef __SANITIZE_THREAD__
const std::vector<int64_t> kThreadedLayout = {70000, 10, 40000};
const std::vector<int> kThreads = {3};
#else
const std::vector<int64_t> kThreadedLayout = {200000, 10, 90000};
const std::vector<int> kThreads = {1, 2, 3, 7};
#endif

TEST_P(CodecConformance, AveragesTheSameOnAnyNumberOfThreads) {
  const auto codec = New(kThreadedLayout);
  const int64_t size = codec->layout().size();
  Random random(11);
  const std::vector<float> weights = AveragingWeights({7, 1000, 23});
  std::vector<std::string> messages;
  std::vector<float> expected(size), expected_weighted(size);
  for (uint64_t client = 0; client < 3; ++client) {
    messages.push_back(*codec->Encode(RandomUpdate(size, &random), {CodecKey{1, 1, client}}));
    const std::vector<float> decoded = Decode(*codec, messages.back());
    for (int64_t i = 0; i < size; ++i) {
      expected[i] += decoded[i];
      const float term = weights[client] * decoded[i];
      expected_weighted[i] += term;
    }
  }
  for (float& value : expected) value *= 1.0f / 3;
  const std::vector<absl::string_view> views(messages.begin(), messages.end());
  for (const int threads : kThreads) {
    std::vector<float> average(size, 99.0f);
    ASSERT_EQ(AverageUpdates(*codec, views, {}, threads, absl::MakeSpan(average)), absl::OkStatus());
    EXPECT_TRUE(Bits(average) == Bits(expected)) << threads;
    ASSERT_EQ(AverageUpdates(*codec, views, weights, threads, absl::MakeSpan(average)), absl::OkStatus());
    EXPECT_TRUE(Bits(average) == Bits(expected_weighted)) << threads << ", weighted";
  }
}

TEST_P(CodecConformance, WeightedAverageIsTheSumOfShares) {
  const auto codec = New(Sizes());
  const int64_t size = codec->layout().size();
  Random random(12);
  for (const int count : {1, 2, 40}) {
    std::vector<std::string> messages;
    std::vector<int64_t> samples;
    std::vector<std::vector<float>> decoded;
    double total = 0;
    for (int client = 0; client < count; ++client) {
      messages.push_back(*codec->Encode(RandomUpdate(size, &random), {CodecKey{1, 1, static_cast<uint64_t>(client)}}));
      decoded.push_back(Decode(*codec, messages.back()));
      samples.push_back(1 + static_cast<int64_t>(random.Below(client % 3 == 0 ? 10 : 100000)));
      total += static_cast<double>(samples.back());
    }
    std::vector<float> average(size, 99.0f);
    const std::vector<absl::string_view> views(messages.begin(), messages.end());
    ASSERT_EQ(AverageUpdates(*codec, views, AveragingWeights(samples), 1, absl::MakeSpan(average)), absl::OkStatus());
    for (int64_t i = 0; i < size; ++i) {
      double sum = 0, magnitude = 0;
      for (int client = 0; client < count; ++client) {
        const double share = static_cast<double>(samples[client]) / total * decoded[client][i];
        sum += share;
        magnitude += std::abs(share);
      }
      // Each weight, product and sum rounds once, by at most 2^-24 of itself.
      EXPECT_NEAR(average[i], sum, (count + 2) * 0x1p-23 * magnitude) << i << " of " << count;
    }
  }
}

TEST_P(CodecConformance, RefusesTruncationAtEveryOffsetAndTrailingBytes) {
  const auto codec = New(Sizes());
  Random random(2);
  const std::string message = *codec->Encode(RandomUpdate(codec->layout().size(), &random));
  for (size_t size = 0; size < message.size(); ++size) {
    // The copy ends where the message does, for the address sanitizer.
    const std::vector<char> copy(message.begin(), message.begin() + size);
    EXPECT_FALSE(codec->Validate(absl::string_view(copy.data(), copy.size())).ok()) << size;
  }
  for (int trailing : {1, 2, 9, 5000}) {
    for (char byte : {'\0', '\1', '\xff'}) EXPECT_FALSE(codec->Validate(message + std::string(trailing, byte)).ok());
  }
}

TEST_P(CodecConformance, RefusesOrBoundsEverySingleByteCorruption) {
  const auto codec = New({3, 40, 9});
  Random random(3);
  std::vector<float> update = RandomUpdate(codec->layout().size(), &random);
  std::fill(update.begin(), update.begin() + 3, 0.0f);
  const std::string message = *codec->Encode(update);
  for (size_t at = 0; at < message.size(); ++at) {
    for (int change = 1; change < 256; ++change) {
      std::string broken = message;
      broken[at] = static_cast<char>(broken[at] ^ change);
      ExpectRefusedOrConsistent(*codec, broken);
    }
  }
}

TEST_P(CodecConformance, RefusesOrBoundsRandomBytes) {
  const auto codec = New(Sizes());
  Random random(4);
  const std::string message = *codec->Encode(RandomUpdate(codec->layout().size(), &random));
  for (int i = 0; i < 1000; ++i) {
    std::string noise(1 + random.Below(2 * message.size()), '\0');
    for (char& byte : noise) byte = static_cast<char>(random.Below(i % 2 == 0 ? 256 : 2));
    noise[0] = message[0];
    ExpectRefusedOrConsistent(*codec, noise);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, CodecConformance, ::testing::ValuesIn(AllCodecCasesAndBuffers()),
                         [](const ::testing::TestParamInfo<CodecCase>& info) { return info.param.name; });

// Codecs that choose by size alone change nothing that they have decoded: one update, one message.
TEST(Codec, HasOneMessageForWhatItDecodes) {
  for (const char* name : {"sbc", "stc", "top_k", "dgc", "fp16", "bf16", "dense"}) {
    const auto codec = NewCodec(name, 0.05, "bf16", MakeLayout(Sizes()));
    Random random(5);
    for (int i = 0; i < 50; ++i) {
      const std::string message = *codec->Encode(RandomUpdate(codec->layout().size(), &random));
      EXPECT_EQ(*codec->Encode(Decode(*codec, message)), message) << name;
    }
  }
}

TEST(CodecTable, NamesTheKnownCodecsAndGroupings) {
  const Layout layout = MakeLayout({4});
  EXPECT_THAT(MakeCodec(SparseSpec("zip", 0.1), layout).status().ToString(), HasSubstr("known codecs are sbc, stc"));
  EXPECT_THAT(MakeCodec(SparseSpec("sbc", 0.1, "fp32", "morse"), layout).status().ToString(), HasSubstr("rice"));
  CodecSpec spec = SparseSpec("sbc", 0.1);
  spec.grouping = "by_colour";
  EXPECT_THAT(MakeCodec(spec, layout).status().ToString(), HasSubstr("merge_small"));
}

}  // namespace
}  // namespace terse
