// The histories in memory, without an engine.
#include "coordinator/update_histories.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "compression/codec_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/grid_trainer.h"

namespace terse {
namespace {

std::unique_ptr<const Codec> GridCodec() { return *MakeCodec({"sbc", 0.1, "bf16", "rice"}, GridLayout()); }

TEST(UpdateHistories, ModelsOfWhichTwoDoNotFitAreRefused) {
  const std::unique_ptr<const Codec> codec = GridCodec();
  const int64_t bytes = UpdateHistories(codec.get()).state_bytes();
  EXPECT_EQ(UpdateHistories::Check(*codec, 2 * bytes), absl::OkStatus());
  const absl::Status refused = UpdateHistories::Check(*codec, 2 * bytes - 1);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("choose other positions"));
}

// Threads unpack while the engine's changes what they unpack with.
TEST(UpdateHistories, ThreadsReadWhatNobodyChanges) {
  const std::unique_ptr<const Codec> made = GridCodec();
  const Codec& codec = *made;
  UpdateHistories histories(&codec);
  UpdateHistory history(*codec.PackedLayout());
  std::vector<std::string> messages;
  for (int64_t step = 0; step < 20; ++step) {
    const std::vector<float> delta = GridDelta(0, step);
    messages.push_back(*codec.Encode(delta));
    if (step < 10) {
      ASSERT_EQ(codec.AddToHistory(messages.back(), &history), absl::OkStatus());
    }
  }
  const std::string packed = *codec.Pack(messages[10], history);
  std::atomic<bool> done{false};
  std::atomic<int64_t> read{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      while (!done) {
        Update update;
        update.message = packed;
        update.packed = true;
        histories.Unpack(0, &update);
        // It is unpacked with the history that it was packed with or with a later one, or not at all.
        if (!update.packed && update.message == messages[10]) ++read;
      }
    });
  }
  for (int round = 0; round < 50 || read == 0; ++round) {
    histories.Hold(0, history);
    std::this_thread::yield();
    for (size_t step = 10; step < messages.size(); ++step) {
      ASSERT_EQ(histories.Add(0, messages[step]), absl::OkStatus());
      EXPECT_FALSE(histories.StateOf(0).empty());
    }
    if (round % 3 == 0) histories.Drop(0);
    if (round % 7 == 0) histories.Clear();
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace terse
