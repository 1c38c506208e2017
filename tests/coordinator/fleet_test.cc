// The room of the clients: who is in which group after which change.
#include "coordinator/fleet.h"

#include <limits>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scripted_client.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kBegan = 1'000'000;

class FleetTest : public ::testing::Test {
 protected:
  Session& Join(int64_t client, SessionId id) {
    Session& session = fleet_.Connect(id, std::make_shared<RecordingLink>());
    fleet_.Adopt(session, client, absl::StrCat("c", client));
    fleet_.SetVersion(session, 0);
    return session;
  }
  std::vector<int64_t> Idle() const {
    return fleet_.groups().Select([](Standing s) { return s.idle; });
  }
  std::vector<int64_t> Active() const {
    return fleet_.groups().Select([](Standing s) { return s.active; });
  }
  int64_t NobodyComes() const {
    const auto undelivered = [](Standing s) { return !s.delivered; };
    return fleet_.NobodyComesMicros(undelivered, undelivered);
  }
  void TearDown() override { EXPECT_TRUE(fleet_.IsConsistent()); }

  Fleet fleet_{/*buffered=*/false, kBegan};
};

TEST_F(FleetTest, EveryChangeMovesAClientBetweenTheGroups) {
  Session& a = Join(0, 11);
  Session& b = Join(1, 12);
  EXPECT_THAT(Idle(), ElementsAre(0, 1));
  fleet_.SetAssigned(a, 1);
  EXPECT_THAT(Idle(), ElementsAre(1));
  fleet_.SetAssigned(a, 0);
  fleet_.SetOwed(b, 1);
  EXPECT_THAT(Idle(), ElementsAre(0));
  fleet_.SetOwed(b, 0);
  fleet_.SetHead(1);
  EXPECT_THAT(Idle(), IsEmpty());
  fleet_.SetVersion(a, 1);
  EXPECT_THAT(Idle(), ElementsAre(0));
  fleet_.SetAside(a, 99);
  EXPECT_THAT(Idle(), IsEmpty());
  EXPECT_THAT(Active(), ElementsAre(1));
  fleet_.SetAside(a, 0);
  EXPECT_THAT(Idle(), ElementsAre(0));
  fleet_.Refuse(a);
  EXPECT_THAT(Active(), ElementsAre(1));
}

TEST_F(FleetTest, ReadyInABufferedRunIsAlsoWhoLagsOrWorks) {
  Fleet fleet(/*buffered=*/true, kBegan);
  Session& lags = fleet.Connect(1, std::make_shared<RecordingLink>());
  Session& works = fleet.Connect(2, std::make_shared<RecordingLink>());
  Session& loads = fleet.Connect(3, std::make_shared<RecordingLink>());
  fleet.Adopt(lags, 0, "a");
  fleet.Adopt(works, 1, "b");
  fleet.Adopt(loads, 2, "c");
  fleet.SetHead(5);
  fleet.SetVersion(lags, 4);
  fleet.SetVersion(works, 4);
  fleet.SetAssigned(works, 3);
  const auto ready = [&] { return fleet.groups().Select([](Standing s) { return s.ready; }); };
  const auto spare = [&] { return fleet.groups().Select([](Standing s) { return s.spare; }); };
  EXPECT_THAT(ready(), ElementsAre(0, 1));
  EXPECT_THAT(spare(), ElementsAre(0));
  fleet.SetDraining(lags, true);
  EXPECT_THAT(ready(), ElementsAre(0, 1));
  EXPECT_THAT(spare(), IsEmpty()) << "more of the log follows by itself";
  EXPECT_TRUE(fleet.IsConsistent());
}

TEST_F(FleetTest, ATakenNameHasOneSession) {
  Session& old = Join(0, 11);
  fleet_.SetAside(old, 50);
  fleet_.Evict(old);
  EXPECT_EQ(old.client(), -1);
  EXPECT_EQ(fleet_.NextReadmissionMicros(), Fleet::kNobody) << "the one that lost its name would be due for ever";
  Session& fresh = Join(0, 12);
  EXPECT_EQ(fleet_.Of(0), &fresh);
  fleet_.Disconnect(old, kBegan);
  EXPECT_EQ(fleet_.Of(0), &fresh);
  EXPECT_THAT(Idle(), ElementsAre(0));
}

TEST_F(FleetTest, ReadmissionsComeInOrder) {
  Session& a = Join(0, 11);
  Session& b = Join(1, 12);
  fleet_.SetAside(a, 300);
  fleet_.SetAside(b, 200);
  EXPECT_EQ(fleet_.NextReadmissionMicros(), 200);
  EXPECT_THAT(fleet_.DueReadmissions(250), ElementsAre(1));
  fleet_.SetAside(b, 0);
  EXPECT_EQ(fleet_.NextReadmissionMicros(), 300);
  fleet_.Disconnect(a, kBegan);
  EXPECT_EQ(fleet_.NextReadmissionMicros(), Fleet::kNobody) << "who is not connected is readmitted when it comes";
}

TEST_F(FleetTest, ARoundWaitsForWhoLeftAShortWhileAgo) {
  Session& a = Join(0, 11);
  Session& b = Join(1, 12);
  EXPECT_EQ(NobodyComes(), Fleet::kNobody);
  fleet_.SetDelivered(0, true);
  EXPECT_EQ(NobodyComes(), Fleet::kNobody);
  fleet_.Disconnect(b, kBegan + 5);
  EXPECT_EQ(NobodyComes(), kBegan + 5 + kReturnMicros);
  fleet_.SetDelivered(1, true);
  EXPECT_EQ(NobodyComes(), kBegan + kReturnMicros) << "it has delivered";
  fleet_.EndRound(/*keep_deliveries=*/false);
  EXPECT_EQ(NobodyComes(), Fleet::kNobody);
  fleet_.Disconnect(a, kBegan + 2 * kReturnMicros);
  EXPECT_EQ(NobodyComes(), kBegan + 3 * kReturnMicros);
  EXPECT_EQ(fleet_.at(1).left_us, 0) << "it is not expected any more";
  Join(0, 13);
  EXPECT_EQ(fleet_.at(0).left_us, 0);
}

TEST_F(FleetTest, WhoIsSetAsideIsNotWaitedFor) {
  Session& a = Join(0, 11);
  fleet_.SetAside(a, 99);
  fleet_.Disconnect(a, kBegan + 5);
  EXPECT_EQ(NobodyComes(), kBegan + kReturnMicros);
}

TEST_F(FleetTest, ManyChangesAtOnceMoveTheGroupsAtTheEnd) {
  Session& a = Join(0, 11);
  Session& b = Join(1, 12);
  {
    const Fleet::Bulk outer(&fleet_);
    const Fleet::Bulk inner(&fleet_);
    fleet_.SetHead(1);
    fleet_.SetVersion(a, 1);
    fleet_.SetAssigned(b, 1);
    fleet_.SetInvited(1, true);
  }
  EXPECT_THAT(Idle(), ElementsAre(0));
  EXPECT_EQ(fleet_.groups().Count([](Standing s) { return s.invited; }), 1);
}

TEST_F(FleetTest, OnlyWhatChangedIsToldOnce) {
  Session& a = Join(0, 11);
  Join(1, 12);
  EXPECT_THAT(fleet_.TakeChanged(), ElementsAre(0, 1));
  EXPECT_THAT(fleet_.TakeChanged(), IsEmpty());
  fleet_.Touch(a);
  fleet_.SetAssigned(a, 1);
  EXPECT_THAT(fleet_.TakeChanged(), ElementsAre(0));
}

}  // namespace
}  // namespace terse
