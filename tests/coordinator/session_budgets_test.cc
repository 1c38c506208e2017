// Tests the bounds on a session's cost: unrequested messages, updates that need no decoding, and repeated events.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/message_checks.h"
#include "coordinator/repeated_events.h"
#include "coordinator/rpc/due_updates.h"
#include "coordinator/rpc/message_budget.h"
#include "tests/testing/fleet_simulation.h"
#include "tests/testing/scripted_client.h"

namespace terse {
namespace {

Update UpdateOf(int64_t round, absl::string_view id) {
  Update update;
  update.round = round;
  update.update_id = HashBytes(id);
  return update;
}

TEST(MessageBudget, PacesWhoSaysMoreThanItIsAskedFor) {
  MessageBudget budget;
  absl::Time now = absl::UnixEpoch();
  for (int i = 0; i < 60; ++i) budget.Take(now);
  EXPECT_EQ(budget.Wait(now), absl::ZeroDuration());
  budget.Take(now);
  EXPECT_EQ(budget.Wait(now), absl::Milliseconds(500)) << "two a second";
  now += absl::Milliseconds(500);
  EXPECT_EQ(budget.Wait(now), absl::ZeroDuration());
  EXPECT_EQ(budget.Wait(now - absl::Hours(1)), absl::ZeroDuration()) << "a clock that was set back";
}

TEST(MessageBudget, RoundsPayForTheirUpdates) {
  MessageBudget budget;
  const absl::Time now = absl::UnixEpoch();
  for (int64_t round = 1; round <= 10'000; ++round) {
    budget.OnAssigned(round);
    budget.Take(now);
    ASSERT_EQ(budget.Wait(now), absl::ZeroDuration()) << "as fast as it can, round " << round;
  }
  // Saying Ready gets a client the same work again, and that pays for nothing.
  for (int i = 0; i < 61; ++i) {
    budget.OnAssigned(10'000);
    budget.Take(now);
  }
  EXPECT_GT(budget.Wait(now), absl::ZeroDuration());
}

TEST(DueUpdates, AnAssignmentPaysForOne) {
  DueUpdates due;
  EXPECT_FALSE(due.Take(UpdateOf(1, "a")));
  due.OnSent(Assignment{1, 0, 1});
  EXPECT_FALSE(due.Take(UpdateOf(2, "a"))) << "another round's";
  EXPECT_TRUE(due.Take(UpdateOf(1, "a")));
  EXPECT_FALSE(due.Take(UpdateOf(1, "a"))) << "the same again is answered by its id";
  due.OnSent(Assignment{1, 0, 1});
  EXPECT_FALSE(due.Take(UpdateOf(1, "b"))) << "the same work again";
  due.OnSent(Assignment{2, 1, 1});
  EXPECT_TRUE(due.Take(UpdateOf(2, "c")));
}

TEST(DueUpdates, APendingUpdateIsAskedForWithTheWelcome) {
  for (const Outcome outcome : {Outcome::kPending, Outcome::kApplied, Outcome::kNotApplied, Outcome::kReset}) {
    DueUpdates due;
    CheckIn check_in;
    check_in.pending_update_id = HashBytes("pending");
    check_in.pending_round = 7;
    due.OnReceived(check_in);
    Welcome welcome;
    welcome.verdict = Verdict{outcome, check_in.pending_update_id, {}, ""};
    due.OnSent(welcome);
    EXPECT_FALSE(due.Take(UpdateOf(7, "another")));
    EXPECT_EQ(due.Take(UpdateOf(7, "pending")), outcome == Outcome::kPending);
    EXPECT_FALSE(due.Take(UpdateOf(7, "pending")));
  }
}

EventRecord Event(int64_t time_us, const std::string& kind, int64_t client) {
  return {time_us, kind, 1, client, "detail " + std::to_string(time_us)};
}

TEST(RepeatedEvents, CountsThoseOfAMinuteInOneRow) {
  RepeatedEvents events;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(events.Add(Event(i, "model_drift", 0), i));
  EXPECT_EQ(events.NextMicros(), std::numeric_limits<int64_t>::max()) << "nothing is counted";
  for (int i = 3; i < 1000; ++i) EXPECT_FALSE(events.Add(Event(i, "model_drift", 0), i));
  EXPECT_TRUE(events.Add(Event(5, "model_drift", 1), 5)) << "another client's";
  EXPECT_TRUE(events.Add(Event(5, "update_conflict", 0), 5)) << "another kind";
  EXPECT_TRUE(events.TakeDue(59'999'999, /*all=*/false).empty());
  EXPECT_EQ(events.NextMicros(), 60'000'000);
  const std::vector<EventRecord> due = events.TakeDue(60'000'000, /*all=*/false);
  ASSERT_EQ(due.size(), 1);
  EXPECT_EQ(due[0].detail, "detail 999 (997 times within a minute)");
  EXPECT_EQ(due[0].client, 0);
  EXPECT_TRUE(events.Add(Event(60'000'001, "model_drift", 0), 60'000'001)) << "and begins anew";
}

TEST(RepeatedEvents, TakesAllAtTheEnd) {
  RepeatedEvents events;
  for (int i = 0; i < 4; ++i) events.Add(Event(i, "client_refused", -1), i);
  const std::vector<EventRecord> due = events.TakeDue(10, /*all=*/true);
  ASSERT_EQ(due.size(), 1);
  EXPECT_EQ(due[0].detail, "detail 3") << "one needs no number";
  EXPECT_TRUE(events.TakeDue(10, /*all=*/true).empty());
}

class SessionBudgets : public testing::Test {
 protected:
  SessionBudgets() : fleet_(GridRunConfig(2, 1000), 0) { EXPECT_EQ(fleet_.StartCoordinator(), absl::OkStatus()); }

  FleetSimulation fleet_;
};

TEST_F(SessionBudgets, DriftAgainAndAgainIsRefusedAndCounted) {
  for (SessionId id = 1001; id <= 1004; ++id) {
    ScriptedClient client(&fleet_, "a", id);
    ASSERT_EQ(client.SayCheckIn(), absl::OkStatus());
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(client.Say(Ready{0, HashBytes("other weights"), GridLayout().Hash(), 1}), absl::OkStatus());
    }
    EXPECT_EQ(client.Count<Resync>(), 2);
    ASSERT_EQ(client.Count<Refusal>(), 1);
    EXPECT_TRUE(client.All<Refusal>()[0].retry) << "a model can be mended";
    ASSERT_EQ(client.Disconnect(), absl::OkStatus());
  }
  EXPECT_EQ(EventsOf(fleet_, "model_drift").size(), 3) << "12 of them";
  // The engine asks to be woken for the row of those that were counted.
  const int64_t minute_us = fleet_.clock()->MonotonicMicros() + 60'000'000;
  while (fleet_.clock()->MonotonicMicros() < minute_us && *fleet_.PassNextDeadline()) continue;
  ASSERT_EQ(EventsOf(fleet_, "model_drift").size(), 4);
  EXPECT_THAT(EventsOf(fleet_, "model_drift").back().detail, testing::EndsWith(" (9 times within a minute)"));
}

TEST_F(SessionBudgets, WhyClientsLeaveIsBookedAndCounted) {
  for (SessionId id = 1001; id <= 1006; ++id) {
    ScriptedClient client(&fleet_, "a", id);
    ASSERT_EQ(client.SayCheckIn(), absl::OkStatus());
    ASSERT_EQ(client.Say(Leaving{"training diverged"}), absl::OkStatus());
    ASSERT_EQ(client.Say(Leaving{"nobody hears this"}), absl::OkStatus());
    ASSERT_EQ(client.Disconnect(), absl::OkStatus());
  }
  const std::vector<EventRecord> events = EventsOf(fleet_, "client_failed");
  ASSERT_EQ(events.size(), 3) << "the others of the minute are counted";
  for (const EventRecord& event : events) {
    EXPECT_EQ(event.client_name, "a");
    EXPECT_EQ(event.detail, "training diverged");
  }
  ScriptedClient in_order(&fleet_, "b", 1007);
  ASSERT_EQ(in_order.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(in_order.Say(Leaving{}), absl::OkStatus());
  EXPECT_EQ(EventsOf(fleet_, "client_failed").size(), 3) << "it left in order";
}

TEST_F(SessionBudgets, AnUpdateThatWasNotDecodedNeverCounts) {
  ScriptedClient a(&fleet_, "a", 1001), b(&fleet_, "b", 1002);
  for (ScriptedClient* client : {&a, &b}) {
    ASSERT_EQ(client->SayCheckIn(), absl::OkStatus());
    ASSERT_EQ(client->SayReady(), absl::OkStatus());
  }
  const Update honest = a.MakeUpdate(1, 0, 0);
  FromClient message = honest;
  ASSERT_EQ(TakeMessage(fleet_.codec(), nullptr, 0, &message, /*is_due=*/false), absl::OkStatus());
  ASSERT_EQ(fleet_.Handle(Received{1001, message}), absl::OkStatus());
  EXPECT_EQ(a.Count<Receipt>(), 0);
  ASSERT_EQ(a.Count<Refusal>(), 1);
  EXPECT_TRUE(a.All<Refusal>()[0].retry);
  ASSERT_EQ(a.Disconnect(), absl::OkStatus());
  ScriptedClient again(&fleet_, "a", 1003);
  ASSERT_EQ(again.SayCheckIn({}, honest.update_id, 1), absl::OkStatus());
  EXPECT_EQ(again.All<Welcome>().at(0).verdict->outcome, Outcome::kPending) << "it is asked for";
}

}  // namespace
}  // namespace terse
