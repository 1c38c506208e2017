// The times that a coordinator keeps for the traces of its newest rounds.
#include "coordinator/rpc/round_traces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/fake_clock.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr size_t kAll = 1000;

Update UpdateOf(int64_t round, int64_t train_us, const std::string& message) {
  Update update;
  update.round = round;
  update.train_us = train_us;
  update.message = message;
  return update;
}

std::vector<std::string> NamesOf(const RoundTraces::Round& round) {
  std::vector<std::string> names;
  for (const ClientTrace& trace : round.clients) names.push_back(trace.client);
  return names;
}

class RoundTracesTest : public ::testing::Test {
 protected:
  void Deliver(int64_t round, const std::string& client) {
    traces_.UploadBegan(round, client);
    clock_.Advance(1);
    traces_.Received(UpdateOf(round, 250'000, "12345"), client);
  }

  FakeClock clock_;
  const int64_t start_us_ = clock_.NowMicros();
  RoundTraces traces_{2, &clock_};
};

TEST_F(RoundTracesTest, KeepsWhatHappenedToAClientOnce) {
  traces_.Assigned(1, "a");
  clock_.Advance(1);
  traces_.Assigned(1, "a");  // again, after it lost its connection
  Deliver(1, "a");
  clock_.Advance(1);
  traces_.Decided(1, "a", Outcome::kPending);
  traces_.Decided(1, "a", Outcome::kApplied);
  clock_.Advance(1);
  Deliver(1, "a");  // it did not hear of that, and sends the same again
  traces_.Decided(1, "a", Outcome::kNotApplied);
  const RoundTraces::Round round = traces_.Get(1, kAll);
  ASSERT_EQ(round.clients.size(), 1u);
  const ClientTrace& trace = round.clients[0];
  EXPECT_EQ(trace.assigned_us, start_us_);
  EXPECT_EQ(trace.upload_began_us, start_us_ + 1'000'000);
  EXPECT_EQ(trace.received_us, start_us_ + 2'000'000);
  EXPECT_EQ(trace.verdict_us, start_us_ + 3'000'000);
  EXPECT_EQ(trace.train_us, 250'000);
  EXPECT_EQ(trace.payload_bytes, 5);
  EXPECT_EQ(trace.outcome, Outcome::kApplied);
}

TEST_F(RoundTracesTest, TheSlowestComeFirst) {
  for (const char* client : {"absent", "first", "second"}) traces_.Assigned(1, client);
  Deliver(1, "first");
  Deliver(1, "second");
  EXPECT_THAT(NamesOf(traces_.Get(1, kAll)), ElementsAre("absent", "second", "first"));
  EXPECT_THAT(NamesOf(traces_.Get(1, 2)), ElementsAre("absent", "second"));
  EXPECT_EQ(traces_.Get(1, 2).total, 3u);
}

TEST_F(RoundTracesTest, KeepsTheNewestRoundsAlone) {
  for (int64_t round = 1; round <= 3; ++round) traces_.Assigned(round, "a");
  EXPECT_THAT(NamesOf(traces_.Get(1, kAll)), IsEmpty());
  EXPECT_EQ(traces_.Get(1, kAll).total, 0u);
  EXPECT_EQ(traces_.Get(2, kAll).total, 1u);
  EXPECT_EQ(traces_.Get(3, kAll).total, 1u);
}

TEST_F(RoundTracesTest, WhatNobodyAskedForMakesNoEntry) {
  traces_.Assigned(1, "a");
  Deliver(1, "b");
  Deliver(99, "a");
  traces_.Decided(99, "a", Outcome::kReset);
  EXPECT_THAT(NamesOf(traces_.Get(1, kAll)), ElementsAre("a"));
  EXPECT_EQ(traces_.Get(1, kAll).clients[0].received_us, 0);
  EXPECT_THAT(NamesOf(traces_.Get(99, kAll)), IsEmpty());
}

}  // namespace
}  // namespace terse
