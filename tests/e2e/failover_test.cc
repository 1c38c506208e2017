// Several coordinators on one PostgreSQL store: whichever serves is killed, or paused and woken up again. Another one
// goes on at the committed round, and no update is lost or counts twice.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/postgres_db.h"
#include "storage/postgres_run_store.h"
#include "tests/e2e/fleet_conservation.h"
#include "tests/e2e/fleet_processes.h"
#include "tests/testing/postgres_server.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

// A port of the loopback interface that was free just now.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

class FailoverTest : public ::testing::Test {
 protected:
  static constexpr int kCoordinators = 2;

  void SetUp() override {
    WriteText(directory_ / "run.toml", ConservationRunFile("strict"));
    for (int& port : ports_) port = FreePort();
    coordinators_.resize(kCoordinators);
    StartCoordinator(0, {"--run-file", directory_ / "run.toml"});
    ASSERT_TRUE(WaitUntil([&] { return Holder() == 0; }, absl::Seconds(20))) << coordinators_[0]->Output();
    StartCoordinator(1);
    for (int i = 0; i < kClients; ++i) StartClient(i);
  }

  std::string CoordinatorState(int index) const { return directory_ / absl::StrCat("coordinator-", index); }
  std::string ClientStateOf(int index) const { return directory_ / absl::StrCat("client-", index); }

  void StartCoordinator(int index, const std::vector<std::string>& extra = {}) {
    std::vector<std::string> argv = {TERSE_BIN "/grid-coordinator",
                                     "--state",
                                     CoordinatorState(index),
                                     "--store",
                                     server_.address(),
                                     "--listen",
                                     absl::StrCat("127.0.0.1:", ports_[index]),
                                     "--lease",
                                     "1"};
    argv.insert(argv.end(), extra.begin(), extra.end());
    coordinators_[index] = std::make_unique<Process>(argv, directory_ / absl::StrCat("coordinator-", index, ".log"));
  }
  void StartClient(int index) {
    clients_.push_back(std::make_unique<Process>(
        std::vector<std::string>{TERSE_BIN "/grid-client", "--coordinator",
                                 absl::StrCat("127.0.0.1:", ports_[0], ",127.0.0.1:", ports_[1]), "--name",
                                 absl::StrCat("client-", index), "--state", ClientStateOf(index)},
        directory_ / absl::StrCat("client-", index, ".log")));
  }

  // The one whose process has the lease; -1: none of them. Who takes the lease ends other sessions than such a one.
  int Holder() {
    const auto db = PostgresDb::Open(server_.address(), "terse", PostgresDb::Mode::kLease).value();
    Statement row = db->Prepare("SELECT holder FROM lease");
    const absl::StatusOr<bool> found = row.Step();
    if (!found.ok() || !*found) return -1;
    for (int i = 0; i < kCoordinators; ++i) {
      if (coordinators_[i] != nullptr &&
          absl::EndsWith(row.GetText(0), absl::StrCat("process ", coordinators_[i]->pid()))) {
        return i;
      }
    }
    return -1;
  }
  // Committed rounds; -1 before there is a run.
  int64_t Version() {
    const auto db = PostgresDb::Open(server_.address(), "terse_conservation", PostgresDb::Mode::kLease).value();
    Statement row = db->Prepare("SELECT version FROM head");
    const absl::StatusOr<bool> found = row.Step();
    return found.ok() && *found ? row.GetInt(0) : -1;
  }
  void WaitForRounds(int64_t rounds) {
    ASSERT_TRUE(WaitUntil([&] { return Version() >= rounds; }, absl::Seconds(60)))
        << "at " << Version() << "\n"
        << coordinators_[0]->Output() << coordinators_[1]->Output();
  }
  // Ends whoever serves, by SIGKILL, or by SIGSTOP and, once another one serves, SIGCONT. It comes back as a standby.
  void EndHolder(bool paused) {
    const int old = Holder();
    ASSERT_GE(old, 0);
    if (paused) {
      coordinators_[old]->Signal(SIGSTOP);
    } else {
      coordinators_[old]->Kill();
    }
    const auto another = [&] {
      const int holder = Holder();
      return holder >= 0 && holder != old;
    };
    ASSERT_TRUE(WaitUntil(another, absl::Seconds(20))) << coordinators_[1 - old]->Output();
    if (paused) {
      coordinators_[old]->Signal(SIGCONT);
      EXPECT_EQ(coordinators_[old]->Wait(absl::Seconds(20)), absl::optional<int>(1)) << coordinators_[old]->Output();
      EXPECT_THAT(coordinators_[old]->Output(), HasSubstr("another coordinator took the lease"));
    }
    StartCoordinator(old);
  }

  PostgresServer server_;
  ScratchDirectory directory_;
  int ports_[kCoordinators] = {};
  std::vector<std::unique_ptr<Process>> coordinators_, clients_;
};

TEST_F(FailoverTest, NothingIsLostAndNothingCountsTwice) {
  constexpr int kEnds = 4;
  for (int i = 1; i <= kEnds; ++i) {
    WaitForRounds(i * kRounds / (kEnds + 1));
    if (HasFatalFailure()) return;
    EndHolder(/*paused=*/i % 2 == 0);
    if (HasFatalFailure()) return;
  }
  for (const auto& client : clients_) {
    EXPECT_EQ(client->Wait(absl::Seconds(120)), absl::optional<int>(0)) << client->Output();
  }
  for (const auto& coordinator : coordinators_) {
    coordinator->Signal(SIGTERM);
    EXPECT_EQ(coordinator->Wait(absl::Seconds(20)), absl::optional<int>(0)) << coordinator->Output();
  }
  // A backup is the run on SQLite.
  const std::string copy = directory_ / "copy";
  {
    const auto store = PostgresRunStore::Open(server_.address(), "terse_conservation", directory_ / "look",
                                              PosixFiles(), MessageLimits());
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_EQ((*store)->Backup(copy), absl::OkStatus());
  }
  ExpectConservation(copy, [this](int client) { return ClientStateOf(client); });
  EXPECT_EQ(QueryNumber(copy + "/run.sqlite", "SELECT sum(resets) FROM clients"), 0);
}

}  // namespace
}  // namespace terse
