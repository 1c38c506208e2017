#include "coordinator/rpc/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/session_wire.h"

namespace terse {
namespace {

Downstream DeltaOf(int64_t version, int64_t bytes) {
  std::string message(bytes, '\0');
  for (int64_t i = 0; i < bytes; ++i) message[i] = static_cast<char>(i * 2654435761u >> 13);
  return {version, Id128{7, 8}, std::make_shared<const std::string>(std::move(message))};
}

// Reads what the boxes send, as a client does.
class OutboxTest : public testing::Test {
 protected:
  // Takes everything; each batch stays near a chunk's size.
  std::vector<FromServer> TakeAll(Outbox* outbox) {
    ServerMessageReader reader;
    reader.set_max_downstream_bytes(int64_t{1} << 30);
    std::vector<FromServer> all;
    batches_ = 0;
    for (v1::ServerMessages batch; outbox->TakeBatch(kChunkBytes, &batch); batch.Clear()) {
      ++batches_;
      EXPECT_LE(batch.ByteSizeLong(), static_cast<size_t>(kMaxMessageBytes) / 4);
      for (const v1::ServerMessage& wire : batch.messages()) {
        auto message = reader.Feed(wire);
        EXPECT_TRUE(message.ok()) << message.status();
        if (message.ok() && message->has_value()) all.push_back(**std::move(message));
      }
    }
    EXPECT_EQ(outbox->bytes(), 0);
    return all;
  }

  int batches_ = 0;
};

TEST_F(OutboxTest, ADownstreamMessageIsSharedUntilItsChunksLeave) {
  constexpr int kSessions = 64;
  const Downstream delta = DeltaOf(3, 3 * kChunkBytes + 17);
  std::vector<Outbox> boxes(kSessions);
  for (Outbox& box : boxes) box.Add(delta, {});
  EXPECT_EQ(delta.message.use_count(), 1 + kSessions) << "each holds a reference and no copy";
  EXPECT_EQ(boxes[0].bytes(), 3 * kChunkBytes + 17);
  v1::ServerMessages batch;
  EXPECT_TRUE(boxes[0].TakeBatch(kChunkBytes, &batch));
  EXPECT_EQ(boxes[0].bytes(), 2 * kChunkBytes + 17);
  for (Outbox& box : boxes) {
    box.Clear();
    EXPECT_EQ(box.bytes(), 0);
  }
  EXPECT_EQ(delta.message.use_count(), 1);
}

TEST_F(OutboxTest, EverythingArrivesInOrderAndWhole) {
  for (const int64_t bytes : {int64_t{1}, kChunkBytes - 1, kChunkBytes, kChunkBytes + 1, 5 * kChunkBytes}) {
    Outbox outbox;
    const Downstream delta = DeltaOf(4, bytes);
    outbox.Add(Receipt{Id128{1, 2}}, {});
    outbox.Add(delta, {});
    outbox.Add(Finished{"done"}, {});
    const std::vector<FromServer> all = TakeAll(&outbox);
    ASSERT_EQ(all.size(), 3u) << bytes;
    EXPECT_EQ(std::get<Receipt>(all[0]).update_id, (Id128{1, 2}));
    EXPECT_EQ(std::get<Downstream>(all[1]).version, 4);
    EXPECT_EQ(*std::get<Downstream>(all[1]).message, *delta.message);
    EXPECT_EQ(std::get<Finished>(all[2]).reason, "done");
  }
}

TEST_F(OutboxTest, SmallBatchesCarryTheSameMessage) {
  Outbox outbox;
  const Downstream delta = DeltaOf(4, kChunkBytes + 17);
  outbox.Add(delta, {});
  ServerMessageReader reader;
  reader.set_max_downstream_bytes(kChunkBytes + 17);
  absl::optional<FromServer> message;
  int64_t batches = 0;
  for (v1::ServerMessages batch; outbox.TakeBatch(1000, &batch); batch.Clear(), ++batches) {
    ASSERT_EQ(batch.messages_size(), 1);
    EXPECT_LE(batch.messages(0).downstream().data().size(), 1000u);
    auto read = reader.Feed(batch.messages(0));
    ASSERT_TRUE(read.ok()) << read.status();
    if (read->has_value()) message = **std::move(read);
  }
  EXPECT_EQ(batches, (kChunkBytes + 17 + 999) / 1000);
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(*std::get<Downstream>(*message).message, *delta.message);
}

TEST_F(OutboxTest, SmallMessagesLeaveTogether) {
  Outbox outbox;
  for (int i = 0; i < 100; ++i) outbox.Add(Receipt{Id128{1, 2}}, {});
  outbox.Add(DeltaOf(1, 1000), {});
  EXPECT_EQ(TakeAll(&outbox).size(), 101u);
  EXPECT_EQ(batches_, 1);
  EXPECT_EQ(TakeAll(&outbox).size(), 0u);
  EXPECT_EQ(batches_, 0) << "there is nothing to write";
}

}  // namespace
}  // namespace terse
