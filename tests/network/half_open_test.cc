// Connections that are open and carry nothing, and what ends them: keepalive pings, or the packet that finds no entry
// in a NAT. Nobody else tells either end.
#include <csignal>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/network/network_fleet.h"

namespace terse {
namespace {

FleetShape ShapeWithKeepalive() {
  FleetShape shape;
  shape.keepalive_seconds = 1;
  return shape;
}

TcpProxy::Plan ForgetAfter(absl::Duration silence) {
  return [silence](int) {
    LinkScript script;
    script.forget_after = silence;
    return script;
  };
}

int Forgotten(NetworkFleet& fleet) {
  int count = 0;
  for (const LinkCount& link : fleet.proxy().Counts()) count += link.forgotten;
  return count;
}

// Takes a fleet in the middle of its rounds, does `damage` to every open connection, and expects rounds on new ones.
void ExpectRecovery(const std::function<void(LinkScript* script)>& damage) {
  NetworkFleet fleet(ShapeWithKeepalive());
  fleet.StartClients();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(fleet.Commits(5)) << fleet.Logs();
    fleet.proxy().ForEachOpen([&damage](int, LinkScript* script) { damage(script); });
  }
  ASSERT_TRUE(fleet.Commits(20)) << fleet.Logs();
  fleet.FinishAndCheck();
}

TEST(HalfOpen, NothingArrivesEitherWay) {
  ExpectRecovery([](LinkScript* script) { script->up.lose_after = script->down.lose_after = 0; });
}

TEST(HalfOpen, RepliesAreLostOnly) {
  ExpectRecovery([](LinkScript* script) { script->down.lose_after = 0; });
}

TEST(HalfOpen, RequestsAreLostOnly) {
  ExpectRecovery([](LinkScript* script) { script->up.lose_after = 0; });
}

// Replies are lost from the first byte, from the middle of a session, or from later on: the client sends the same
// update on every connection, and it counts once.
TEST(HalfOpen, RepliesAreLostFromEveryPlace) {
  constexpr int kPlaces = 12;
  NetworkFleet fleet(ShapeWithKeepalive(), [](int index) {
    LinkScript script;
    if (index < kPlaces) script.down.lose_after = 150 * index;
    return script;
  });
  fleet.StartClients();
  EXPECT_TRUE(WaitUntil([&] { return fleet.proxy().Counts().size() > kPlaces; }, kPatience)) << fleet.Logs();
  EXPECT_TRUE(fleet.Commits(20)) << fleet.Logs();
  fleet.FinishAndCheck();
}

// Pings that come before a NAT forgets keep connections alive while a round waits for one client.
TEST(Nat, KeepalivePingsKeepItsEntries) {
  NetworkFleet fleet(ShapeWithKeepalive(), ForgetAfter(absl::Seconds(4)));
  fleet.StartClient(0);
  ASSERT_TRUE(WaitUntil([&] { return fleet.proxy().Counts().size() == 1; }, kPatience));
  for (int i = 1; i < 3; ++i) fleet.StartClient(i);
  ASSERT_TRUE(fleet.Commits(5)) << fleet.Logs();
  fleet.processes().client(0).Signal(SIGSTOP);
  // The stopped client answers no ping: its entry goes, and by then the others' would have gone too.
  EXPECT_TRUE(WaitUntil([&] { return fleet.proxy().Counts()[0].forgotten; }, kPatience)) << fleet.Logs();
  EXPECT_EQ(Forgotten(fleet), 1) << fleet.Logs();
  fleet.processes().client(0).Signal(SIGCONT);
  EXPECT_TRUE(fleet.Commits(5)) << fleet.Logs();
  fleet.FinishAndCheck();
}

// A NAT that forgets sooner than anybody pings: whoever speaks next is reset, and comes back.
TEST(Nat, ForgottenConnectionsComeBack) {
  FleetShape shape;
  shape.keepalive_seconds = 4;
  NetworkFleet fleet(shape, ForgetAfter(absl::Seconds(2)));
  fleet.StartClients();
  ASSERT_TRUE(fleet.Commits(5)) << fleet.Logs();
  fleet.processes().client(0).Signal(SIGSTOP);
  EXPECT_TRUE(WaitUntil([&] { return Forgotten(fleet) >= shape.clients; }, kPatience)) << fleet.Logs();
  fleet.processes().client(0).Signal(SIGCONT);
  EXPECT_TRUE(fleet.Commits(5)) << fleet.Logs();
  const int forgotten = Forgotten(fleet);
  fleet.FinishAndCheck(absl::StrCat(forgotten, " forgotten"));
}

}  // namespace
}  // namespace terse
