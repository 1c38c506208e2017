// Peers that read or write slowly, or not at all: they wait for themselves only.
#include <csignal>
#include <fstream>
#include <limits>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/network/network_fleet.h"

namespace terse {
namespace {

// Rounds close without the slow one.
FleetShape ShapeWithQuorum() {
  FleetShape shape;
  shape.clients = 4;
  shape.quorum = 3;
  shape.deadline_seconds = 0.1;
  return shape;
}

// Returns a plan that gives the script to the first connection alone.
TcpProxy::Plan FirstConnection(const LinkScript& script) {
  return [script](int index) { return index == 0 ? script : LinkScript(); };
}

LinkScript Thin(int64_t bytes_per_second, int64_t chunk_bytes) {
  LinkScript script;
  script.up.bytes_per_second = script.down.bytes_per_second = bytes_per_second;
  script.up.chunk_bytes = script.down.chunk_bytes = chunk_bytes;
  return script;
}

// The most memory that the process held so far, as its kernel says.
// In KiB; the largest number when it is not known.
int64_t PeakMemory(const Process& process) {
  std::ifstream status(absl::StrCat("/proc/", process.pid(), "/status"));
  std::string word;
  int64_t kib = std::numeric_limits<int64_t>::max();
  while (status >> word) {
    if (word == "VmHWM:") status >> kib;
  }
  return kib;
}

int64_t AppliedOf(NetworkFleet& fleet, int client) {
  return QueryNumber(fleet.processes().database(),
                     absl::StrCat("SELECT updates_applied FROM clients WHERE name = 'client-", client, "'"));
}

TEST(SlowPeers, TricklingClientDelaysNobody) {
  NetworkFleet fleet(ShapeWithQuorum(), FirstConnection(Thin(/*bytes_per_second=*/600, /*chunk_bytes=*/7)));
  fleet.StartClient(0);
  ASSERT_TRUE(WaitUntil([&] { return !fleet.proxy().Counts().empty(); }, kPatience));
  for (int i = 1; i < 4; ++i) fleet.StartClient(i);
  ASSERT_TRUE(fleet.Commits(50)) << fleet.Logs();
  // It never had the time to join in; on a link as the others' it does.
  fleet.proxy().ForEachOpen([](int, LinkScript* script) { *script = {}; });
  EXPECT_TRUE(WaitUntil([&] { return AppliedOf(fleet, 0) > 0; }, kPatience)) << fleet.Logs();
  fleet.FinishAndCheck();
}

// Every byte of every client comes alone or in small pieces: messages are put together however they arrive.
TEST(SlowPeers, BytesComeOneByOne) {
  FleetShape shape;
  NetworkFleet fleet(shape, [](int index) { return Thin(kNeverBytes, 1 + index); });
  fleet.StartClients();
  ASSERT_TRUE(fleet.Commits(10)) << fleet.Logs();
  fleet.FinishAndCheck();
}

bool Joined(NetworkFleet& fleet, int client) {
  return absl::StrContains(fleet.processes().client(client).Output(), "joined run");
}

TEST(SlowPeers, ClientThatDoesNotReadDelaysNobody) {
  NetworkFleet fleet(ShapeWithQuorum());
  fleet.StartClient(0);
  ASSERT_TRUE(WaitUntil([&] { return Joined(fleet, 0); }, kPatience));
  fleet.proxy().ForEachOpen([](int, LinkScript* script) { script->down.read = false; });
  for (int i = 1; i < 4; ++i) fleet.StartClient(i);
  ASSERT_TRUE(fleet.Commits(50)) << fleet.Logs();
  fleet.proxy().ForEachOpen([](int, LinkScript* script) { *script = {}; });
  EXPECT_TRUE(WaitUntil([&] { return AppliedOf(fleet, 0) > 0; }, kPatience)) << fleet.Logs();
  fleet.FinishAndCheck();
}

// A client that does not read is sent no more once 16 MiB and a message wait for it: here 18 rounds of 80. Its session
// stays, the others notice nothing, and it gets what it lacks when it reads again.
TEST(SlowPeers, AClientThatDoesNotReadIsSentNoMore) {
  FleetShape shape = ShapeWithQuorum();
  shape.deadline_seconds = 0.2;
  shape.codec = {"dense"};
  shape.wide = true;
  NetworkFleet fleet(shape, nullptr, {{}, "", {"--unread-timeout", "600"}});
  fleet.StartClient(0);
  ASSERT_TRUE(WaitUntil([&] { return Joined(fleet, 0); }, kPatience));
  for (int i = 1; i < 4; ++i) fleet.StartClient(i);
  ASSERT_TRUE(fleet.Commits(1)) << fleet.Logs();
  fleet.proxy().ForEachOpen([](int index, LinkScript* script) { script->down.read = index != 0; });
  const int64_t before = PeakMemory(fleet.processes().coordinator());
  EXPECT_TRUE(fleet.Commits(80)) << fleet.Logs();
  const int64_t held = PeakMemory(fleet.processes().coordinator()) - before;
  EXPECT_LT(held, 56 << 10) << "KiB; the messages of all rounds have 75 MB";
  EXPECT_FALSE(absl::StrContains(fleet.processes().coordinator().Output(), "client_left")) << fleet.Logs();
  fleet.proxy().ForEachOpen([](int, LinkScript* script) { *script = {}; });
  const int64_t applied = AppliedOf(fleet, 0);
  EXPECT_TRUE(WaitUntil([&] { return AppliedOf(fleet, 0) > applied + 2; }, kPatience)) << fleet.Logs();
  fleet.FinishAndCheck(absl::StrCat("the coordinator's memory grew by ", held, " KiB"));
}

// The log of the rounds that a client missed is more than may wait for it: it gets it in parts.
TEST(SlowPeers, ClientFarBehindCatchesUpByTheLog) {
  constexpr int64_t kModelBytes = 313'600;
  constexpr int64_t kMostQueuedBytes = (int64_t{64} << 20) + 8 * kModelBytes;
  constexpr int64_t kRoundBytes = 3 * kModelBytes;  // the updates of three clients, forwarded
  FleetShape shape = ShapeWithQuorum();
  shape.deadline_seconds = 0.05;
  shape.codec = {"dense"};
  shape.wide = true;
  NetworkFleet fleet(shape, [&shape](int index) {
    LinkScript when_back;  // slow at first, so that what is sent has to wait
    when_back.down.bytes_per_second = 10'000'000;
    return index < shape.clients ? LinkScript() : when_back;
  });
  fleet.StartClients();
  ASSERT_TRUE(WaitUntil([&] { return AppliedOf(fleet, 0) > 0; }, kPatience)) << fleet.Logs();
  fleet.processes().client(0).Signal(SIGTERM);
  ASSERT_EQ(fleet.processes().client(0).Wait(kPatience), absl::optional<int>(0));
  ASSERT_TRUE(fleet.Commits(2 * kMostQueuedBytes / kRoundBytes)) << fleet.Logs();
  const int64_t applied = AppliedOf(fleet, 0);
  fleet.StartClient(0);
  ASSERT_TRUE(WaitUntil([&] { return Joined(fleet, 0); }, kPatience));
  ASSERT_TRUE(fleet.Commits(10)) << fleet.Logs();
  fleet.proxy().ForEachOpen([](int, LinkScript* script) { *script = {}; });
  EXPECT_TRUE(WaitUntil([&] { return AppliedOf(fleet, 0) > applied; }, kPatience)) << fleet.Logs();
  EXPECT_EQ(QueryNumber(fleet.processes().database(), "SELECT count(*) FROM events WHERE kind = 'client_left'"), 1);
  fleet.FinishAndCheck();
}

// A process that is asked to stop does so although its bytes go nowhere.
TEST(SlowPeers, StalledClientStopsInOrder) {
  NetworkFleet fleet({});
  fleet.StartClients();
  ASSERT_TRUE(fleet.Commits(2)) << fleet.Logs();
  fleet.proxy().ForEachOpen([](int, LinkScript* script) { script->up.bytes_per_second = 0; });
  fleet.FinishAndCheck();
}

// Whether nothing moves on the connection any more.
bool IsQuiet(TcpProxy& proxy, int index) {
  const LinkCount before = proxy.Counts()[index];
  absl::SleepFor(absl::Milliseconds(300));
  const LinkCount after = proxy.Counts()[index];
  return before.up == after.up && before.down == after.down;
}

// The write of an update of 313 KB waits for a window that nobody opens: of HTTP/2's first 64 KB nothing arrives.
TEST(SlowPeers, ClientStalledInAnUpdateStopsInOrder) {
  constexpr int64_t kModelBytes = 313'600;
  FleetShape shape;
  shape.clients = 2;
  shape.codec = {"dense"};
  shape.wide = true;
  NetworkFleet fleet(shape);
  // The first client has the model and waits for the second.
  fleet.StartClient(0);
  ASSERT_TRUE(WaitUntil([&] { return fleet.proxy().Total().down > kModelBytes; }, kPatience));
  ASSERT_TRUE(WaitUntil([&] { return IsQuiet(fleet.proxy(), 0); }, kPatience));
  fleet.proxy().ForEachOpen([](int, LinkScript* script) { script->up.bytes_per_second = 0; });
  fleet.StartClient(1);
  EXPECT_TRUE(WaitUntil([&] { return fleet.proxy().Total().up > kModelBytes; }, kPatience)) << fleet.Logs();
  fleet.FinishAndCheck();
}

}  // namespace
}  // namespace terse
