// What every row of the codec table must do, whatever it keeps of an update. A new codec is tested by being a row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

const std::vector<int64_t>& Sizes() {
  static const auto* const sizes = new std::vector<int64_t>{1, 30, 2, 300, 17};
  return *sizes;
}

// Codec, density, precision of the mean.
using Row = std::tuple<std::string, double, std::string>;

class CodecConformance : public ::testing::TestWithParam<Row> {
 protected:
  std::unique_ptr<const Codec> New(const std::vector<int64_t>& sizes) const {
    return NewCodec(std::get<0>(GetParam()), std::get<1>(GetParam()), std::get<2>(GetParam()), MakeLayout(sizes));
  }

  // The promises about one good message.
  void ExpectGood(const Codec& codec, absl::Span<const float> update) const {
    const auto message = codec.Encode(update);
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_EQ(message, codec.Encode(update)) << "not deterministic";
    EXPECT_LE(static_cast<int64_t>(message->size()), codec.MaxMessageBytes());
    EXPECT_FALSE(message->empty());
    EXPECT_TRUE(codec.Validate(*message).ok());
    ExpectConsistent(codec, *message);
  }

  // Positions, values and both signs of a message that decodes agree.
  void ExpectConsistent(const Codec& codec, const std::string& message) const {
    const std::vector<float> values = Decode(codec, message);
    ASSERT_EQ(static_cast<int64_t>(values.size()), codec.layout().size());
    std::vector<float> back = values;
    ASSERT_TRUE(codec.AddDecoded(message, -1.0f, absl::MakeSpan(back)).ok());
    for (float value : back) EXPECT_EQ(value, 0);
    const auto sent = codec.SentPositions(message);
    ASSERT_TRUE(sent.ok());
    if (!sent->has_value()) return;
    EXPECT_TRUE(std::is_sorted((*sent)->begin(), (*sent)->end(), std::less_equal<uint32_t>()));
    std::vector<uint32_t> nonzero;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_TRUE(std::isfinite(values[i]));
      if (values[i] != 0) nonzero.push_back(i);
    }
    EXPECT_EQ(**sent, nonzero);
  }

  // Either refused by all of the decoder's methods, or decoded within bounds by all of them.
  void ExpectRefusedOrConsistent(const Codec& codec, const std::string& message) const {
    const absl::Status status = codec.Validate(message);
    if (status.ok()) return ExpectConsistent(codec, message);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    std::vector<float> values(codec.layout().size());
    EXPECT_EQ(codec.AddDecoded(message, 1.0f, absl::MakeSpan(values)), status);
    EXPECT_EQ(codec.SentPositions(message).status(), status);
  }
};

TEST_P(CodecConformance, KeepsItsNameAndLayout) {
  const auto codec = New(Sizes());
  EXPECT_EQ(codec->name(), std::get<0>(GetParam()));
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
}

TEST_P(CodecConformance, CodesAModelOfOneElement) {
  const auto codec = New({1});
  for (float value : {0.0f, 3.0f, -4.0f}) ExpectGood(*codec, {value});
}

TEST_P(CodecConformance, RefusesUpdatesItCannotCode) {
  const auto codec = New(Sizes());
  const std::vector<float> update(codec->layout().size(), 0.5f);
  EXPECT_EQ(codec->Encode(absl::MakeSpan(update).subspan(1)).status().code(), absl::StatusCode::kInvalidArgument);
  for (float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> broken = update;
    broken[33 + 42] = bad;
    const absl::Status status = codec->Encode(broken).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("tensor 't3', index 42"));
  }
}

TEST_P(CodecConformance, RefusesAnAccumulatorOfAnotherSize) {
  const auto codec = New(Sizes());
  const std::string message = *codec->Encode(std::vector<float>(codec->layout().size(), 1.0f));
  std::vector<float> values(codec->layout().size() - 1);
  EXPECT_EQ(codec->AddDecoded(message, 1.0f, absl::MakeSpan(values)).code(), absl::StatusCode::kInvalidArgument);
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
  for (int i = 0; i < 3000; ++i) {
    std::string noise(1 + random.Below(2 * message.size()), '\0');
    for (char& byte : noise) byte = static_cast<char>(random.Below(i % 2 == 0 ? 256 : 2));
    noise[0] = message[0];
    ExpectRefusedOrConsistent(*codec, noise);
  }
}

// What decodes and was not made by Encode differs from what Encode makes of it: one update, one message.
TEST_P(CodecConformance, HasOneMessageForWhatItDecodes) {
  const auto codec = New(Sizes());
  Random random(5);
  for (int i = 0; i < 50; ++i) {
    const std::string message = *codec->Encode(RandomUpdate(codec->layout().size(), &random));
    EXPECT_EQ(*codec->Encode(Decode(*codec, message)), message);
  }
}

std::vector<Row> Rows() {
  std::vector<Row> rows;
  for (const std::string& name : CodecNames()) {
    for (double density : {0.001, 0.05, 0.4, 1.0}) {
      for (const char* precision : {"fp32", "bf16"}) rows.emplace_back(name, density, precision);
    }
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Table, CodecConformance, ::testing::ValuesIn(Rows()),
                         [](const ::testing::TestParamInfo<Row>& info) {
                           const int permille = static_cast<int>(std::lround(1000 * std::get<1>(info.param)));
                           return absl::StrCat(std::get<0>(info.param), "_", permille, "_", std::get<2>(info.param));
                         });

}  // namespace
}  // namespace terse
