#include "compression/choice_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compression/feedback_table.h"
#include "compression/run_codecs.h"
#include "core/codec_choices.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr CodecKey kKey = {7, 3, 1};

CodecSpec Bits(int64_t bits) {
  CodecSpec spec;
  spec.name = "qsgd";
  spec.bits = bits;
  return spec;
}

std::vector<CodecSpec> Mixed() {
  return {SparseSpec("sbc", 0.3), SparseSpec("dgc", 0.1), Bits(3), SparseSpec("stc", 0.05)};
}

EncodeOptions Choose(int64_t choice) {
  EncodeOptions options;
  options.key = kKey;
  options.choice = choice;
  return options;
}

TEST(ChoiceCodec, WritesItsNumberTheChoiceAndTheChosenCodecsMessage) {
  for (const bool buffers : {false, true}) {
    const Layout layout = MakeLayout({60, 7, 4}, buffers ? 1 : 0);
    const auto codec = *ChoiceCodec::Create(Mixed(), layout);
    Random random(1);
    const std::vector<float> update = RandomUpdate(layout.size(), &random);
    for (int64_t choice = 0; choice < 4; ++choice) {
      const auto plain = *MakeCodec(Mixed()[choice], layout);
      const std::string expected = *plain->Encode(update, {kKey});
      const std::string message = *codec->Encode(update, Choose(choice));
      EXPECT_EQ(message, std::string({'\x1a', static_cast<char>(choice)}) + expected);
      EXPECT_EQ(ChoiceOf(message), choice);
      EXPECT_EQ(Decode(*codec, message), Decode(*plain, expected));
      EXPECT_EQ(*codec->CostBits(update, Choose(choice)), *plain->CostBits(update, {kKey}) + 16);
      EXPECT_EQ(codec->SentPositions(message)->has_value(), plain->SentPositions(expected)->has_value());
      EXPECT_LE(static_cast<int64_t>(message.size()), codec->MaxMessageBytes());
      EXPECT_GE(codec->MaxMessageBytes(), plain->MaxMessageBytes() + 2);
    }
  }
}

TEST(ChoiceCodec, OfOneIsThePlainCodec) {
  const auto codec = *ChoiceCodec::Create({SparseSpec("sbc", 0.3)}, MakeLayout({10}));
  const auto plain = *MakeCodec(SparseSpec("sbc", 0.3), MakeLayout({10}));
  const std::vector<float> update = {1, -2, 3, 0, 0, 5, 1, 1, 1, 9};
  EXPECT_EQ(*codec->Encode(update, Choose(0)), *plain->Encode(update));
  EXPECT_EQ(ChoiceOf(*plain->Encode(update)), 0);
}

TEST(ChoiceCodec, HasTheTraitsThatHoldForEveryChoice) {
  const CodecTraits mixed = (*ChoiceCodec::Create(Mixed(), MakeLayout({60})))->traits();
  EXPECT_TRUE(mixed.stochastic);  // qsgd
  EXPECT_FALSE(mixed.unbiased);
  EXPECT_FALSE(mixed.carries_all);
  EXPECT_FALSE(mixed.lossless);
  const CodecTraits bits = (*ChoiceCodec::Create({Bits(2), Bits(8)}, MakeLayout({60})))->traits();
  EXPECT_TRUE(bits.unbiased);
  EXPECT_TRUE(bits.carries_all);
}

TEST(ChoiceCodec, RefusesChoicesThatDoNotExist) {
  const auto codec = *ChoiceCodec::Create(Mixed(), MakeLayout({60}));
  const std::vector<float> update(60, 1.0f);
  for (const int64_t choice : {-1, 4, 1000}) {
    EXPECT_THAT(codec->Encode(update, Choose(choice)).status().message(), HasSubstr("no choice"));
  }
  std::string message = *codec->Encode(update, Choose(3));
  message[1] = 4;
  EXPECT_EQ(codec->Validate(message).code(), absl::StatusCode::kInvalidArgument);
  message[1] = 2;  // the bytes of another codec
  EXPECT_EQ(codec->Validate(message).code(), absl::StatusCode::kInvalidArgument);
  const std::string plain = *(*MakeCodec(Mixed()[0], MakeLayout({60})))->Encode(update);
  EXPECT_THAT(codec->Validate(plain).message(), HasSubstr("0x1a"));
  EXPECT_FALSE(ChoiceCodec::Create({}, MakeLayout({60})).ok());
  EXPECT_FALSE(ChoiceCodec::Create(std::vector<CodecSpec>(257, Bits(2)), MakeLayout({60})).ok());
  EXPECT_FALSE(ChoiceCodec::Create({Bits(2), SparseSpec("sbc", 0)}, MakeLayout({60})).ok());
}

TEST(ChoiceCodec, RefusesEveryTruncation) {
  const auto codec = *ChoiceCodec::Create(Mixed(), MakeLayout({60, 7}));
  Random random(2);
  const std::vector<float> update = RandomUpdate(67, &random);
  for (int64_t choice = 0; choice < 4; ++choice) {
    const std::string message = *codec->Encode(update, Choose(choice));
    for (size_t length = 0; length < message.size(); ++length) {
      EXPECT_EQ(codec->Validate(message.substr(0, length)).code(), absl::StatusCode::kInvalidArgument) << length;
    }
    EXPECT_FALSE(codec->Validate(message + '\0').ok());
  }
}

// The update that was sealed under one choice and those that come after it under another add up to the trained deltas.
TEST(ChoiceCodec, AFeedbackKeepsEverythingAcrossChoices) {
  const Layout layout = MakeLayout({200, 9});
  const std::vector<CodecSpec> choices = {SparseSpec("sbc", 0.02), SparseSpec("sbc", 0.2), SparseSpec("top_k", 0.05)};
  const auto codec = *ChoiceCodec::Create(choices, layout);
  auto feedback = *MakeFeedback(choices[0], codec.get());
  Random random(3);
  std::vector<double> left(layout.size(), 0.0);
  std::vector<size_t> sizes(3, 0);
  for (int64_t round = 0; round < 30; ++round) {
    std::vector<float> delta(layout.size());
    for (size_t i = 0; i < delta.size(); ++i) {
      delta[i] = static_cast<float>(static_cast<int64_t>(random.Below(2049)) - 1024) / 1024;
      left[i] += delta[i];
    }
    const std::string message = *feedback->Compress(&delta, {1, static_cast<uint64_t>(round), 0}, round % 3);
    EXPECT_EQ(ChoiceOf(message), round % 3);
    sizes[round % 3] = message.size();
    // A restart while it is sealed: the message says by which choice it decodes.
    const std::vector<float> dense(feedback->dense().begin(), feedback->dense().end());
    feedback = *MakeFeedback(choices[0], codec.get());
    ASSERT_EQ(feedback->Restore(dense, "", message), absl::OkStatus());
    const bool applied = round % 4 != 1;
    ASSERT_EQ(feedback->Settle(applied), absl::OkStatus());
    if (!applied) continue;
    const std::vector<float> sent = Decode(*codec, message);
    for (size_t i = 0; i < left.size(); ++i) left[i] -= sent[i];
  }
  for (size_t i = 0; i < left.size(); ++i) EXPECT_NEAR(feedback->dense()[i], left[i], 1e-4) << i;
  EXPECT_LT(2 * sizes[0], sizes[1]);  // the density was the choice's
}

TEST(RunCodecs, AreThoseOfTheController) {
  RunConfig config;
  config.codec = Bits(4);
  EXPECT_EQ(UpdateChoices(config).size(), 1);
  config.control.name = "mqgrad";
  config.downstream = DownstreamMode::kCoded;
  config.downstream_codec = Bits(4);
  std::vector<int64_t> bits;
  for (const CodecSpec& spec : UpdateChoices(config)) bits.push_back(spec.bits);
  EXPECT_THAT(bits, ElementsAre(2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(DownstreamChoices(config).size(), 7);
  const std::vector<float> update = {1, -0.5, 0.25};
  EXPECT_EQ((*MakeUpdateCodec(config, MakeLayout({3})))->Encode(update, Choose(5))->substr(0, 2), "\x1a\x05");
  EXPECT_EQ((*MakeDownstreamCodec(config, MakeLayout({3})))->Encode(update, Choose(6))->substr(0, 2), "\x1a\x06");

  RunConfig epochs;
  epochs.codec = Bits(4);
  epochs.server.epoch_length = 10;
  epochs.downstream = DownstreamMode::kCoded;
  epochs.downstream_codec = Bits(8);
  ASSERT_EQ(UpdateChoices(epochs).size(), 2);
  EXPECT_EQ(UpdateChoices(epochs)[kFullGradientChoice].name, "dense");
  EXPECT_EQ(UpdateChoices(epochs)[kGradientStepChoice].name, epochs.codec.name);
  EXPECT_EQ(DownstreamChoices(epochs).size(), 1);
  epochs.server.precision_loss = 0.5;
  ASSERT_EQ(DownstreamChoices(epochs).size(), 7);
  EXPECT_EQ(DownstreamChoices(epochs).front().bits, kLowPrecisionFewestBits);
  EXPECT_EQ(DownstreamChoices(epochs).back().bits, 8);

  config.control.name = "schedule";
  config.control.local_steps = {1, 10};
  EXPECT_EQ(UpdateChoices(config).size(), 1);  // the coding stays as it is
  config.control.bits = {8, 2};
  ASSERT_EQ(UpdateChoices(config).size(), 2);
  EXPECT_EQ(UpdateChoices(config)[1].bits, 2);
  EXPECT_EQ(DownstreamChoices(config).size(), 1);
  config.control.bits.clear();
  config.control.density = {0.5, 0.25};
  EXPECT_EQ(UpdateChoices(config)[1].density, 0.25);
  EXPECT_EQ(UpdateChoices(config)[1].bits, 4);
}

// The reason that makes codec.positions = "shared" impossible is given where the codec is made.
TEST(RunCodecs, HistoriesNeedPositionsInEveryCoding) {
  RunConfig config;
  config.codec.positions = std::string(kSharedPositions);
  const Layout layout = MakeLayout({3000});
  const auto shared = MakeUpdateCodec(config, layout);
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_NE((*shared)->PackedLayout(), nullptr);
  std::vector<float> update(layout.size());
  for (size_t i = 0; i < update.size(); ++i) update[i] = static_cast<float>(i % 97) - 50.0f;
  CodecSpec rice = config.codec;
  rice.positions = "rice";
  EXPECT_EQ((*shared)->Encode(update), (*MakeCodec(rice, layout))->Encode(update));

  for (const char* name : {"dense", "qsgd", "mcgq", "random_sparse", "fp16"}) {
    config.codec.name = name;
    const absl::Status refused = MakeUpdateCodec(config, layout).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << name << refused;
    EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("use 'auto', or a sparse codec")) << name;
  }
}

}  // namespace
}  // namespace terse
