#include "tests/e2e/failover_fleet.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "storage/postgres_run_store.h"
#include "tests/e2e/fleet_conservation.h"
#include "tests/e2e/free_address.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

constexpr char kRunSchema[] = "terse_conservation";
constexpr size_t kLogTail = 1500;

std::string Tail(const Process& process) {
  const std::string text = process.Output();
  return text.size() > kLogTail ? text.substr(text.size() - kLogTail) : text;
}

bool LostItsLease(const Process& process) {
  return absl::StrContains(process.Output(), "another process took the lease");
}

}  // namespace

FailoverFleet::FailoverFleet(std::string store, int64_t rounds) : store_(std::move(store)), rounds_(rounds) {
  WriteText(directory_ / "run.toml", ConservationRunFile("strict", "auto", rounds_));
  const std::string host = OwnHost();
  for (std::string& address : addresses_) address = FreeAddress(host);
}

void FailoverFleet::Start() {
  StartCoordinator(0, {"--run-file", directory_ / "run.toml"});
  ASSERT_TRUE(WaitUntil([&] { return Holder() == 0; }, kPatience)) << Logs();
  for (int i = 1; i < kCoordinators; ++i) StartCoordinator(i);
  for (int i = 0; i < kClients; ++i) StartClient(i);
}

void FailoverFleet::StartCoordinator(int index, const std::vector<std::string>& extra) {
  std::vector<std::string> argv = {Program("grid-coordinator"),
                                   "--state",
                                   directory_ / absl::StrCat("coordinator-", index),
                                   "--store",
                                   store_,
                                   "--listen",
                                   addresses_[index],
                                   "--lease",
                                   "1"};
  argv.insert(argv.end(), extra.begin(), extra.end());
  Member& coordinator = coordinators_[index];
  const std::string log = absl::StrCat("coordinator-", index, "-", coordinator.starts++, ".log");
  coordinator.process = std::make_unique<Process>(argv, directory_ / log);
}

void FailoverFleet::ReviveCoordinators() {
  for (int i = 0; i < kCoordinators; ++i) {
    Process& process = *coordinators_[i].process;
    const absl::optional<int> code = process.Wait(absl::ZeroDuration());
    if (!code.has_value()) continue;
    EXPECT_TRUE(code == 1 && LostItsLease(process)) << Logs();
    StartCoordinator(i);
  }
}

std::string FailoverFleet::ClientStateOf(int index) const { return directory_ / absl::StrCat("client-", index); }

void FailoverFleet::StartClient(int index) {
  const std::string name = absl::StrCat("client-", index);
  clients_.push_back(std::make_unique<Process>(
      std::vector<std::string>{Program("grid-client"), "--coordinator", absl::StrJoin(addresses_, ","), "--name", name,
                               "--state", ClientStateOf(index)},
      directory_ / absl::StrCat(name, ".log")));
}

absl::StatusOr<PostgresDb*> FailoverFleet::Look() {
  if (look_ == nullptr) {
    TERSE_ASSIGN_OR_RETURN(look_, PostgresDb::Open(store_, kRunSchema, PostgresDb::Mode::kLease));
  }
  return look_.get();
}

int64_t FailoverFleet::Version() {
  const absl::StatusOr<PostgresDb*> db = Look();
  if (!db.ok()) return -1;
  Statement row = (*db)->Prepare("SELECT version FROM head");
  const absl::StatusOr<bool> found = row.Step();
  if (absl::IsUnavailable(found.status())) look_.reset();
  return found.ok() && *found ? row.GetInt(0) : -1;
}

int FailoverFleet::Holder() {
  const absl::StatusOr<PostgresDb*> db = Look();
  if (!db.ok()) return -1;
  Statement row = (*db)->Prepare("SELECT holder FROM terse.lease");
  const absl::StatusOr<bool> found = row.Step();
  if (absl::IsUnavailable(found.status())) look_.reset();
  if (!found.ok() || !*found) return -1;
  for (int i = 0; i < kCoordinators; ++i) {
    const Process* const process = coordinators_[i].process.get();
    if (process != nullptr && absl::EndsWith(row.GetText(0), absl::StrCat("process ", process->pid()))) return i;
  }
  return -1;
}

std::string FailoverFleet::Logs() const {
  std::string logs;
  for (const Member& coordinator : coordinators_) {
    if (coordinator.process != nullptr) absl::StrAppend(&logs, "coordinator:\n", Tail(*coordinator.process));
  }
  for (const auto& client : clients_) absl::StrAppend(&logs, "client:\n", Tail(*client));
  return logs;
}

void FailoverFleet::WaitForRounds(int64_t rounds) {
  ASSERT_TRUE(WaitUntil([&] { return Version() >= rounds; }, kPatience)) << "at " << Version() << "\n" << Logs();
}

void FailoverFleet::AwaitRoundAfter(int64_t version, absl::Time begin, absl::Duration* until_next) {
  ASSERT_TRUE(WaitUntil([&] { return Version() > version; }, kPatience)) << "at " << Version() << "\n" << Logs();
  *until_next = absl::Now() - begin;
}

void FailoverFleet::EndHolder(Fault fault, absl::Duration* until_next) {
  const int old = Holder();
  ASSERT_GE(old, 0) << Logs();
  Process& process = *coordinators_[old].process;
  const absl::Time begin = absl::Now();
  if (fault == Fault::kStop) {
    process.Signal(SIGSTOP);
  } else {
    process.Kill();
  }
  const auto another = [&] {
    const int holder = Holder();
    return holder >= 0 && holder != old;
  };
  ASSERT_TRUE(WaitUntil(another, kPatience)) << Logs();
  // The old one commits nothing any more, so what comes is the new one's.
  AwaitRoundAfter(Version(), begin, until_next);
  if (testing::Test::HasFatalFailure()) return;
  if (fault == Fault::kStop) {
    process.Signal(SIGCONT);
    EXPECT_EQ(process.Wait(kPatience), absl::optional<int>(1)) << Logs();
    EXPECT_TRUE(LostItsLease(process)) << Logs();
  }
  StartCoordinator(old);
}

void FailoverFleet::LosePrimary(PostgresPair* pair, absl::Duration* until_next, int64_t* lost) {
  // What can be read is committed, so that a client may have heard of it.
  const int64_t before = Version();
  ASSERT_GE(before, 0) << Logs();
  const absl::Time begin = absl::Now();
  pair->LosePrimary();
  look_.reset();
  int64_t after = -1;
  ASSERT_TRUE(WaitUntil([&] { return (after = Version()) >= 0; }, kPatience)) << Logs();
  *lost = std::max<int64_t>(before - after, 0);
  AwaitRoundAfter(after, begin, until_next);
  ReviveCoordinators();
}

void FailoverFleet::LoseServerFor(absl::Duration outage, PostgresServer* server, absl::Duration* until_next) {
  const int64_t before = Version();
  ASSERT_GE(before, 0) << Logs();
  server->Crash();
  absl::SleepFor(outage);
  server->Start();
  const absl::Time begin = absl::Now();
  look_.reset();
  int64_t after = -1;
  ASSERT_TRUE(WaitUntil([&] { return (after = Version()) >= 0; }, kPatience)) << Logs();
  EXPECT_GE(after, before) << "a committed round is gone";
  AwaitRoundAfter(after, begin, until_next);
  ReviveCoordinators();
}

void FailoverFleet::Finish(std::string* run_state) {
  for (const auto& client : clients_) {
    EXPECT_EQ(client->Wait(kPatience), absl::optional<int>(0)) << Logs();
  }
  for (const Member& coordinator : coordinators_) coordinator.process->Signal(SIGTERM);
  for (const Member& coordinator : coordinators_) {
    const absl::optional<int> code = coordinator.process->Wait(kPatience);
    EXPECT_TRUE(code == 0 || (code == 1 && LostItsLease(*coordinator.process))) << Logs();
  }
  const auto store = PostgresRunStore::Open(store_, kRunSchema, directory_ / "look", PosixFiles(), MessageLimits());
  ASSERT_TRUE(store.ok()) << store.status();
  // A backup is the run on SQLite.
  *run_state = directory_ / "copy";
  ASSERT_EQ((*store)->Backup(*run_state), absl::OkStatus());
}

void FailoverFleet::ExpectWholeBooks(const std::string& run_state) const {
  ExpectConservation(
      run_state, [this](int client) { return ClientStateOf(client); }, "auto", rounds_);
  EXPECT_EQ(QueryNumber(run_state + "/run.sqlite", "SELECT sum(resets) FROM clients"), 0);
}

}  // namespace terse
