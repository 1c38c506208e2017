// Decide, commit, speak: nothing of a batch is said before it is durable, and nothing at all when it is not.
#include "coordinator/journal.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/event_loop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fleet_simulation.h"
#include "tests/testing/scripted_client.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() : fleet_(GridRunConfig(2, 100), 0) { EXPECT_EQ(fleet_.StartCoordinator(), absl::OkStatus()); }
  std::shared_ptr<RecordingLink> Connect(SessionId id) {
    auto link = std::make_shared<RecordingLink>();
    EXPECT_EQ(fleet_.Handle(Connected{id, link}), absl::OkStatus());
    return link;
  }
  static Received CheckInOf(SessionId id, const std::string& name) {
    CheckIn message;
    message.name = name;
    return {id, message};
  }

  FleetSimulation fleet_;
};

TEST_F(JournalTest, ABatchIsOneTransaction) {
  const auto a = Connect(1), b = Connect(2);
  std::vector<std::string> ends;
  fleet_.store()->fault = [&](absl::string_view call, bool after) {
    if (!after && (call == "BeginBatch" || call == "CommitBatch")) ends.push_back(std::string(call));
    return absl::OkStatus();
  };
  std::vector<Event> events;
  events.push_back(CheckInOf(1, "a"));
  events.push_back(CheckInOf(2, "b"));
  ASSERT_EQ(fleet_.engine()->Handle(std::move(events)), absl::OkStatus());
  EXPECT_THAT(ends, ElementsAre("BeginBatch", "CommitBatch"));
  EXPECT_EQ(a->sent.size(), 1);
  EXPECT_EQ(b->sent.size(), 1);
  EXPECT_EQ(fleet_.store()->Clients()->size(), 2);
}

TEST_F(JournalTest, NothingIsSaidBeforeTheCommit) {
  const auto link = Connect(1);
  size_t said = 99;
  fleet_.store()->fault = [&](absl::string_view call, bool after) {
    if (call == "CommitBatch" && after) said = link->sent.size();
    return absl::OkStatus();
  };
  ASSERT_EQ(fleet_.engine()->Handle(CheckInOf(1, "a")), absl::OkStatus());
  EXPECT_EQ(said, 0);
  EXPECT_EQ(link->sent.size(), 1);
}

TEST_F(JournalTest, ABatchThatFailsSaysNothingAndLeavesNothing) {
  const auto link = Connect(1);
  fleet_.store()->fault = [](absl::string_view call, bool after) {
    return call == "CommitBatch" && !after ? absl::UnavailableError("the disk is gone") : absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsUnavailable(fleet_.engine()->Handle(CheckInOf(1, "a"))));
  EXPECT_THAT(link->sent, IsEmpty());
  fleet_.store()->fault = nullptr;
  EXPECT_THAT(*fleet_.store()->Clients(), IsEmpty());
  EXPECT_THAT(fleet_.engine()->View().sessions, IsEmpty()) << "nobody may see what did not happen";
}

// Events that wait for the loop are handled together, and a call never falls into a batch.
TEST_F(JournalTest, WhatWaitsForTheLoopIsOneBatch) {
  std::vector<std::shared_ptr<RecordingLink>> links;
  EventLoop loop(fleet_.clock());
  int64_t batches = 0;
  fleet_.store()->fault = [&](absl::string_view call, bool after) {
    batches += call == "CommitBatch" && after;
    return absl::OkStatus();
  };
  for (SessionId id = 1; id <= 50; ++id) {
    links.push_back(std::make_shared<RecordingLink>());
    loop.Post(Connected{id, links.back()});
    loop.Post(CheckInOf(id, absl::StrCat("c", id % 2)), [&loop, id](bool handled) {
      EXPECT_TRUE(handled);
      if (id == 50) loop.Quit();
    });
  }
  EXPECT_EQ(loop.Run(fleet_.engine()), absl::OkStatus());
  EXPECT_EQ(batches, 1);
  for (const auto& link : links) EXPECT_FALSE(link->sent.empty());
}

}  // namespace
}  // namespace terse
