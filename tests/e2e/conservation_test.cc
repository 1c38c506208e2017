// Conservation of updates with real processes: whatever is killed, what the coordinator applied from a client plus that
// client's residual is the sum of the client's deltas, bit for bit (invariants I1 and I2 of docs/PROTOCOL.md).
#include <sys/mount.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compression/codec_table.h"
#include "compression/downstream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/client_state.h"
#include "storage/run_store.h"
#include "tests/e2e/fleet_conservation.h"
#include "tests/e2e/fleet_processes.h"
#include "tests/e2e/health.h"
#include "tests/testing/grid_trainer.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

// The updates of a round as they are without packing.
int64_t ForwardedBytes(absl::string_view downstream) {
  const auto forwarded = ParseForwarded(downstream);
  EXPECT_TRUE(forwarded.ok()) << forwarded.status();
  int64_t bytes = 0;
  for (const absl::string_view update : forwarded->updates) bytes += static_cast<int64_t>(update.size());
  return bytes;
}

// Every process ends in order, the books balance, and nobody had to begin anew.
void ExpectNothingLostAtTheEnd(FleetProcesses& fleet, const std::string& positions = "auto") {
  for (int i = 0; i < kClients; ++i) {
    EXPECT_EQ(fleet.client(i).Wait(absl::Seconds(120)), absl::optional<int>(0)) << fleet.client(i).Output();
  }
  fleet.coordinator().Signal(SIGTERM);
  EXPECT_EQ(fleet.coordinator().Wait(absl::Seconds(20)), absl::optional<int>(0)) << fleet.coordinator().Output();
  ExpectConservation(
      fleet.run_state(), [&fleet](int client) { return fleet.client_state(client); }, positions);
  EXPECT_EQ(QueryNumber(fleet.database(), "SELECT sum(resets) FROM clients"), 0);
}

// The only process that `parent` has started.
pid_t ChildOf(pid_t parent) {
  pid_t child = 0;
  std::ifstream(absl::StrCat("/proc/", parent, "/task/", parent, "/children")) >> child;
  EXPECT_GT(child, 0);
  return child;
}

void RunWithBothSidesKilledOnce(FleetProcesses& fleet, const std::string& positions) {
  const std::string run_file = fleet.directory() / "run.toml";
  WriteText(run_file, ConservationRunFile("strict", positions));
  fleet.StartCoordinator(run_file);
  for (int i = 0; i < kClients; ++i) fleet.StartClient(i);

  ASSERT_TRUE(fleet.WaitForRounds(kRounds / 4, absl::Seconds(60))) << fleet.coordinator().Output();
  fleet.client(1).Kill();
  fleet.StartClient(1);
  ASSERT_TRUE(fleet.WaitForRounds(kRounds / 2, absl::Seconds(60))) << fleet.client(1).Output();
  fleet.coordinator().Kill();
  fleet.StartCoordinator(run_file);

  ExpectNothingLostAtTheEnd(fleet, positions);
  EXPECT_EQ(QueryNumber(fleet.database(), absl::StrCat("SELECT sum(updates_applied) FROM clients")),
            kClients * kRounds);
}

TEST(Conservation, HoldsWhenBothSidesAreKilledOnce) {
  FleetProcesses fleet(Program("grid-coordinator"), Program("grid-client"));
  RunWithBothSidesKilledOnce(fleet, "auto");
}

// The trainer is a program that speaks the trainer protocol, and is killed as well.
TEST(Conservation, HoldsWhenClientTrainerAndCoordinatorAreKilled) {
  FleetProcesses fleet(Program("grid-coordinator"), Program("terse-client"));
  const std::string run_file = fleet.directory() / "run.toml";
  WriteText(run_file, ConservationRunFile("strict"));
  Place clients;
  clients.extra = {"--trainer", Program("grid-trainer"), "--reconnect-after", "0.05"};
  fleet.StartCoordinator(run_file);
  for (int i = 0; i < kClients; ++i) fleet.StartClient(i, clients);
  ASSERT_TRUE(fleet.WaitForRounds(kRounds / 5, absl::Seconds(60))) << fleet.coordinator().Output();
  const pid_t trainer = ChildOf(fleet.client(0).pid());
  ASSERT_GT(trainer, 0);
  kill(trainer, SIGKILL);
  ASSERT_TRUE(fleet.WaitForRounds(2 * kRounds / 5, absl::Seconds(60))) << fleet.client(0).Output();
  EXPECT_THAT(fleet.client(0).Output(), HasSubstr("the trainer was ended by signal 9; trying again in"));
  fleet.client(1).Kill();
  fleet.StartClient(1, clients);
  ASSERT_TRUE(fleet.WaitForRounds(3 * kRounds / 5, absl::Seconds(60))) << fleet.client(1).Output();
  fleet.coordinator().Kill();
  fleet.StartCoordinator(run_file);
  ExpectNothingLostAtTheEnd(fleet);
  EXPECT_EQ(QueryNumber(fleet.database(), absl::StrCat("SELECT sum(updates_applied) FROM clients")),
            kClients * kRounds);
}

// Both ends read their histories from the disk again, and go on packing: no update of the rest is misread.
TEST(Conservation, HoldsWhenPackedUpdatesMeetAKillOnBothSides) {
  FleetProcesses fleet(Program("grid-coordinator"), Program("grid-client"));
  RunWithBothSidesKilledOnce(fleet, "shared");
  EXPECT_EQ(QueryNumber(fleet.database(), "SELECT count(*) FROM events WHERE kind = 'update_misread'"), 0);
  auto store = RunStore::Open(fleet.run_state());
  ASSERT_TRUE(store.ok()) << store.status();
  const auto log = (*store)->ReadLog(0, kRounds);
  ASSERT_TRUE(log.ok()) << log.status();
  for (int64_t end = kRounds / 4; end <= kRounds; end += kRounds / 4) {
    int64_t messages = 0;
    for (int64_t round = end - kRounds / 4; round < end; ++round) messages += ForwardedBytes((*log)[round].downstream);
    const std::string sql =
        absl::StrCat("SELECT sum(payload_bytes) FROM updates WHERE round > ", end - kRounds / 4, " AND round <= ", end);
    EXPECT_LT(QueryNumber(fleet.database(), sql), messages) << "nothing was packed in the quarter before round " << end;
  }
}

TEST(Conservation, RelaxedDurabilityCountsWhatACrashLoses) {
  FleetProcesses fleet(Program("grid-coordinator"), Program("grid-client"));
  const std::string run_file = fleet.directory() / "run.toml";
  WriteText(run_file, ConservationRunFile("relaxed"));
  fleet.StartCoordinator(run_file);
  for (int i = 0; i < kClients; ++i) fleet.StartClient(i);
  ASSERT_TRUE(fleet.WaitForRounds(kRounds / 4, absl::Seconds(60)));
  fleet.client(1).Kill();  // loses a residual
  fleet.StartClient(1);
  ASSERT_TRUE(fleet.WaitForRounds(kRounds / 2, absl::Seconds(60)));
  fleet.client(2).Signal(SIGTERM);  // an orderly stop loses nothing
  EXPECT_EQ(fleet.client(2).Wait(absl::Seconds(20)), absl::optional<int>(0));
  fleet.StartClient(2);
  for (int i = 0; i < kClients; ++i) {
    EXPECT_EQ(fleet.client(i).Wait(absl::Seconds(120)), absl::optional<int>(0)) << fleet.client(i).Output();
  }
  EXPECT_EQ(QueryNumber(fleet.database(), "SELECT sum(resets) FROM clients"), 1);
}

// A file system of a fixed size in memory; needs root.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    // The database, a log of up to 4 MiB, and the copy of the log that every opening makes.
    is_mounted_ = mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=16m,mode=0700") == 0;
  }
  ~SmallDisk() {
    if (is_mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  bool is_mounted() const { return is_mounted_; }

  // Writes until nothing more fits, and gives the space back.
  void Fill() {
    std::ofstream file(path_ + "/filler", std::ios::binary | std::ios::app);
    const std::string page(4096, 'x');
    while (file.write(page.data(), page.size()).flush()) {
    }
  }
  void Free() { std::filesystem::remove(path_ + "/filler"); }

 private:
  const std::string path_;
  bool is_mounted_ = false;
};

TEST(Conservation, HoldsWhenTheCoordinatorsDiskIsFullForATime) {
  FleetProcesses fleet(Program("grid-coordinator"), Program("grid-client"));
  SmallDisk disk(fleet.coordinator_state());
  if (!disk.is_mounted()) GTEST_SKIP() << "mounting a tmpfs of a fixed size needs root";
  const std::string run_file = fleet.directory() / "run.toml";
  WriteText(run_file, ConservationRunFile("strict"));
  fleet.StartCoordinator(run_file);
  for (int i = 0; i < kClients; ++i) fleet.StartClient(i);
  const std::string service = "terse.v1.Fleet/conservation";
  const auto is = [&](Health health) {
    return HealthOf(fleet.addresses().listen, "") == health && HealthOf(fleet.addresses().listen, service) == health;
  };
  ASSERT_TRUE(fleet.WaitForRounds(kRounds / 4, absl::Seconds(60))) << fleet.coordinator().Output();
  EXPECT_TRUE(is(Health::kServing));
  // The database gives space back when it is closed, so filling goes on until opening it fails.
  const auto is_suspended = [&] {
    disk.Fill();
    return absl::StrContains(fleet.coordinator().Output(), "is still suspended");
  };
  ASSERT_TRUE(WaitUntil(is_suspended, absl::Seconds(60))) << fleet.coordinator().Output();
  EXPECT_TRUE(is(Health::kNotServing));
  EXPECT_THAT(fleet.Ctl({"status"}), testing::HasSubstr("suspended: "));
  EXPECT_THAT(fleet.Ctl({"rounds"}), testing::HasSubstr("run 'conservation' is suspended: "));
  disk.Free();
  ASSERT_TRUE(WaitUntil([&] { return is(Health::kServing); }, absl::Seconds(60))) << fleet.coordinator().Output();
  EXPECT_THAT(fleet.coordinator().Output(), testing::HasSubstr("is served again, after"));

  ExpectNothingLostAtTheEnd(fleet);
}

// A process whose syncs fail while the switch is on.
class SyncSwitch {
 public:
  explicit SyncSwitch(std::string path) : path_(std::move(path)) {}
  Place place() const {
    return {{"env", "LD_PRELOAD=" + InBuild("tests/e2e/libfailing_sync.so"), "TERSE_FAIL_SYNC=" + path_,
             "ASAN_OPTIONS=verify_asan_link_order=0"},
            "",
            {}};
  }
  void Break() { WriteText(path_, ""); }
  void Mend() { std::filesystem::remove(path_); }

 private:
  const std::string path_;
};

// Whether the kernel kept the page or dropped it is not known: only another process may read what is there.
TEST(Conservation, HoldsWhenASyncFailsOnEitherSide) {
  FleetProcesses fleet(Program("grid-coordinator"), Program("grid-client"));
  SyncSwitch coordinators(fleet.directory() / "coordinator-broken"), clients(fleet.directory() / "client-broken");
  const std::string run_file = fleet.directory() / "run.toml", unknown = "what is on the disk is not known";
  WriteText(run_file, ConservationRunFile("strict"));
  fleet.StartCoordinator(run_file, coordinators.place());
  for (int i = 0; i < kClients; ++i) fleet.StartClient(i, i == 1 ? clients.place() : Place{});

  ASSERT_TRUE(fleet.WaitForRounds(kRounds / 4, absl::Seconds(60))) << fleet.coordinator().Output();
  coordinators.Break();
  EXPECT_EQ(fleet.coordinator().Wait(absl::Seconds(60)), absl::optional<int>(1)) << fleet.coordinator().Output();
  EXPECT_THAT(fleet.coordinator().Output(), testing::HasSubstr(unknown));
  coordinators.Mend();
  fleet.StartCoordinator(run_file);

  ASSERT_TRUE(fleet.WaitForRounds(kRounds / 2, absl::Seconds(60))) << fleet.coordinator().Output();
  clients.Break();
  EXPECT_EQ(fleet.client(1).Wait(absl::Seconds(60)), absl::optional<int>(1)) << fleet.client(1).Output();
  EXPECT_THAT(fleet.client(1).Output(), testing::HasSubstr(unknown));
  clients.Mend();
  fleet.StartClient(1);

  ExpectNothingLostAtTheEnd(fleet);
}

}  // namespace
}  // namespace terse
