// Messages packed by the history of both ends: every row of the codec table, and what only some of them do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compression/choice_codec.h"
#include "compression/update_history.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

// Two matrices, a vector and a scalar; behind them buffers if wanted.
Layout Matrices(bool buffers) {
  std::vector<Layout::Entry> entries = {{"conv", {20, 6, 5}}, {"bias", {20}}, {"fc", {50, 80}}, {"gain", {}}};
  if (buffers) entries.push_back({"mean", {9}, TensorKind::kBuffer});
  return *Layout::Create(entries);
}

// One element in seven is as large in all of them, so that the same positions are sent often.
std::vector<float> NextUpdate(int64_t size, Random* random) {
  std::vector<float> update = RandomUpdate(size, random, 0.1);
  for (int64_t i = 0; i < size; i += 7) update[i] *= 8;
  return update;
}

class Packing : public ::testing::TestWithParam<CodecCase> {
 protected:
  static constexpr int kMessages = 6;

  std::unique_ptr<const Codec> New() const { return *MakeCodec(GetParam().spec, Matrices(GetParam().buffers)); }
  std::string Message(const Codec& codec) {
    EncodeOptions options;
    options.key = {1, ++round_, 3};
    return *codec.Encode(NextUpdate(codec.layout().size(), &random_), options);
  }

 private:
  Random random_{1};
  uint64_t round_ = 0;
};

TEST_P(Packing, GivesTheMessageBackAtTheOtherEnd) {
  const auto codec = New();
  if (codec->PackedLayout() == nullptr) {
    UpdateHistory history(codec->layout());
    const std::string message = Message(*codec);
    EXPECT_EQ(codec->Pack(message, history).status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(codec->Unpack(message, history).status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(codec->AddToHistory(message, &history).code(), absl::StatusCode::kFailedPrecondition);
    return;
  }
  UpdateHistory client(*codec->PackedLayout()), coordinator(*codec->PackedLayout());
  for (int i = 0; i < kMessages; ++i) {
    const std::string message = Message(*codec);
    const auto packed = codec->Pack(message, client);
    ASSERT_TRUE(packed.ok()) << packed.status();
    const auto unpacked = codec->Unpack(*packed, coordinator);
    ASSERT_TRUE(unpacked.ok()) << unpacked.status();
    ASSERT_EQ(*unpacked, message) << i;
    ASSERT_EQ(codec->AddToHistory(message, &client), absl::OkStatus());
    ASSERT_EQ(codec->AddToHistory(*unpacked, &coordinator), absl::OkStatus());
  }
  EXPECT_EQ(client.Serialize(), coordinator.Serialize());
}

TEST_P(Packing, RefusesWhatPackDoesNotMake) {
  const auto codec = New();
  if (codec->PackedLayout() == nullptr) return;
  UpdateHistory history(*codec->PackedLayout());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(codec->AddToHistory(Message(*codec), &history), absl::OkStatus());
  const std::string packed = *codec->Pack(Message(*codec), history);
  const size_t tail = 4 * (codec->layout().size() - codec->layout().parameters());
  const size_t step = 1 + packed.size() / 200;
  for (size_t length = 0; length < packed.size() - tail; length += step) {
    const std::string cut = packed.substr(0, length) + packed.substr(packed.size() - tail);
    EXPECT_EQ(codec->Unpack(cut, history).status().code(), absl::StatusCode::kInvalidArgument) << length;
  }
  for (size_t at = 0; at < packed.size(); at += step) {
    for (int change : {0x01, 0x10, 0x80, 0xff}) {
      std::string corrupt = packed;
      corrupt[at] = static_cast<char>(corrupt[at] ^ change);
      const auto message = codec->Unpack(corrupt, history);
      if (!message.ok()) {
        EXPECT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument);
      } else if (at + tail < packed.size()) {
        EXPECT_EQ(codec->Validate(*message), absl::OkStatus()) << at;
      }
    }
  }
}

TEST_P(Packing, RefusedMessagesChangeNoHistory) {
  const auto codec = New();
  if (codec->PackedLayout() == nullptr) return;
  UpdateHistory history(*codec->PackedLayout());
  ASSERT_EQ(codec->AddToHistory(Message(*codec), &history), absl::OkStatus());
  const std::string before = history.Serialize();
  std::string message = Message(*codec);
  const size_t tail = 4 * (codec->layout().size() - codec->layout().parameters());
  message.insert(message.size() - tail, 1, '\x01');  // behind the last tensor
  EXPECT_EQ(codec->AddToHistory(message, &history).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(history.Serialize(), before);
  UpdateHistory other(*Layout::Create({{"other", {3}}}));
  EXPECT_THAT(codec->Pack(Message(*codec), other).status().ToString(), HasSubstr("history of other tensors"));
  EXPECT_THAT(codec->Unpack(Message(*codec), other).status().ToString(), HasSubstr("history of other tensors"));
  EXPECT_THAT(codec->AddToHistory(Message(*codec), &other).ToString(), HasSubstr("history of other tensors"));
}

INSTANTIATE_TEST_SUITE_P(Table, Packing, ::testing::ValuesIn(AllCodecCasesAndBuffers()),
                         [](const ::testing::TestParamInfo<CodecCase>& info) { return info.param.name; });

TEST(Packing, IsShorterWhereTheHistoryTellsSomething) {
  const auto codec = *MakeCodec(SparseSpec("sbc", 0.05), Matrices(/*buffers=*/true));
  UpdateHistory history(*codec->PackedLayout());
  Random random(2);
  int64_t packed = 0, canonical = 0;
  for (int i = 0; i < 40; ++i) {
    const std::string message = *codec->Encode(NextUpdate(codec->layout().size(), &random));
    packed += static_cast<int64_t>(codec->Pack(message, history)->size());
    canonical += static_cast<int64_t>(message.size());
    ASSERT_EQ(codec->AddToHistory(message, &history), absl::OkStatus());
  }
  EXPECT_LT(packed, canonical * 9 / 10);
}

TEST(Packing, WithoutAHistoryChangesTheFirstByte) {
  const auto codec = *MakeCodec(SparseSpec("stc", 0.05), Matrices(/*buffers=*/true));
  Random random(6);
  std::string message = *codec->Encode(NextUpdate(codec->layout().size(), &random));
  const std::string packed = *codec->Pack(message, UpdateHistory(*codec->PackedLayout()));
  message[0] = '\x1b';
  EXPECT_EQ(packed, message);
}

// An end that missed a message reads something else, or nothing: never the same by chance.
TEST(Packing, WithAnotherHistoryIsAnotherMessage) {
  const auto codec = *MakeCodec(SparseSpec("sbc", 0.05), Matrices(/*buffers=*/false));
  UpdateHistory client(*codec->PackedLayout()), behind(*codec->PackedLayout());
  Random random(3);
  for (int i = 0; i < 10; ++i) {
    const std::string message = *codec->Encode(NextUpdate(codec->layout().size(), &random));
    const auto read = codec->Unpack(*codec->Pack(message, client), behind);
    EXPECT_EQ(read.ok() && *read == message, i == 0) << i;
    behind = client;
    ASSERT_EQ(codec->AddToHistory(message, &client), absl::OkStatus());
  }
}

// The side of a tensor's message is the sign of its common value.
TEST(Packing, TellsNegativeMessagesApart) {
  const auto codec = *MakeCodec(SparseSpec("sbc", 0.25), *Layout::Create({{"t", {8, 8}}}));
  UpdateHistory positive(*codec->PackedLayout()), negative(*codec->PackedLayout());
  std::vector<float> update(64, 0.0f);
  for (int i = 0; i < 16; ++i) update[3 * i] = 1;
  ASSERT_EQ(codec->AddToHistory(*codec->Encode(update), &positive), absl::OkStatus());
  for (float& value : update) value = -value;
  ASSERT_EQ(codec->AddToHistory(*codec->Encode(update), &negative), absl::OkStatus());
  std::vector<uint32_t> positions;
  for (uint32_t i = 0; i < 16; ++i) positions.push_back(3 * i);
  std::string of_side[2] = {"\1", "\1"};  // the format byte
  for (int side : {0, 1}) {
    PositionHistory alone(8, 8);
    alone.Add(positions, side);
    alone.AppendState(&of_side[side]);
  }
  EXPECT_TRUE(positive.Serialize() == of_side[0]);
  EXPECT_TRUE(negative.Serialize() == of_side[1]);
  EXPECT_TRUE(of_side[0] != of_side[1]);
}

TEST(Packing, ChoicesShareOneHistory) {
  const Layout layout = Matrices(/*buffers=*/true);
  const auto codec = *ChoiceCodec::Create({SparseSpec("sbc", 0.1), SparseSpec("stc", 0.02)}, layout);
  ASSERT_NE(codec->PackedLayout(), nullptr);
  UpdateHistory history(*codec->PackedLayout());
  Random random(4);
  for (int i = 0; i < 6; ++i) {
    EncodeOptions options;
    options.choice = i % 2;
    const std::string message = *codec->Encode(NextUpdate(layout.size(), &random), options);
    const auto packed = codec->Pack(message, history);
    ASSERT_TRUE(packed.ok()) << packed.status();
    EXPECT_EQ(packed->substr(0, 3), std::string({'\x1a', static_cast<char>(i % 2), '\x1b'}));
    EXPECT_EQ(*codec->Unpack(*packed, history), message);
    ASSERT_EQ(codec->AddToHistory(message, &history), absl::OkStatus());
  }
}

TEST(Packing, ChoicesOfSeveralGroupingsCannotBePacked) {
  CodecSpec global = SparseSpec("sbc", 0.1);
  global.grouping = "global";
  CodecSpec dense = SparseSpec("dense", 0.1);
  for (const CodecSpec& second : {global, dense}) {
    const auto codec = *ChoiceCodec::Create({SparseSpec("sbc", 0.1), second}, Matrices(/*buffers=*/false));
    EXPECT_EQ(codec->PackedLayout(), nullptr);
    const std::string message = *codec->Encode(std::vector<float>(codec->layout().size(), 1.0f));
    const UpdateHistory history(codec->layout());
    EXPECT_THAT(codec->Pack(message, history).status().ToString(), HasSubstr("one grouping"));
  }
}

TEST(UpdateHistory, IsReadBackAndGoesOnAsBefore) {
  const Layout layout = Matrices(/*buffers=*/false);
  const auto codec = *MakeCodec(SparseSpec("sbc", 0.1), layout);
  UpdateHistory history(layout);
  Random random(5);
  for (int i = 0; i < 20; ++i) {
    const std::string state = history.Serialize();
    auto parsed = UpdateHistory::Parse(layout, state);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->Serialize(), state);
    const std::string message = *codec->Encode(NextUpdate(layout.size(), &random));
    ASSERT_EQ(*codec->Pack(message, *parsed), *codec->Pack(message, history));
    ASSERT_EQ(codec->AddToHistory(message, &history), absl::OkStatus());
    ASSERT_EQ(codec->AddToHistory(message, &*parsed), absl::OkStatus());
    ASSERT_EQ(parsed->Serialize(), history.Serialize());
  }
}

TEST(UpdateHistory, RefusesOtherLengths) {
  const Layout layout = Matrices(/*buffers=*/false);
  const std::string state = UpdateHistory(layout).Serialize();
  for (size_t length = 0; length < state.size(); length += 1 + length / 50) {
    EXPECT_EQ(UpdateHistory::Parse(layout, state.substr(0, length)).status().code(), absl::StatusCode::kInvalidArgument)
        << length;
  }
  EXPECT_THAT(UpdateHistory::Parse(layout, state + "x").status().ToString(), HasSubstr("tensor 'gain'"));
}

TEST(UpdateHistory, RefusesOtherFormats) {
  const Layout layout = Matrices(/*buffers=*/false);
  std::string state = UpdateHistory(layout).Serialize();
  ASSERT_EQ(state[0], 1);
  state[0] = 2;
  EXPECT_THAT(UpdateHistory::Parse(layout, state).status().ToString(), HasSubstr("another format"));
}

}  // namespace
}  // namespace terse
