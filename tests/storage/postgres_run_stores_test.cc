// A database has one owner, and in a relay's the client half keeps its state.
#include "storage/postgres_run_stores.h"

#include <filesystem>
#include <memory>
#include <string>

#include "storage/client_state.h"
#include "tests/storage/client_state_testing.h"
#include "tests/storage/postgres_testing.h"

namespace terse {
namespace {

class PostgresRunStoresTest : public ::testing::Test {
 protected:
  PostgresRunStoresTest() {
    static int databases = 0;
    database_ = absl::StrCat("owned", ++databases);
    const auto db = PostgresDb::Open(PostgresServer::Shared().address(), "public", PostgresDb::Mode::kLease).value();
    EXPECT_OK(db->Script(absl::StrCat("CREATE DATABASE ", database_)));
  }

  std::string address() const { return absl::StrCat(PostgresServer::Shared().address(), " dbname=", database_); }
  // Opens the database as the relay of that name; empty: as a coordinator. Each process has a directory of its own.
  absl::StatusOr<std::unique_ptr<RunStores>> Open(const std::string& relay) {
    return RunsInPostgres(address(), directory_.Path(absl::StrCat("state", ++processes_)), absl::Hours(1), relay);
  }
  void Change(const std::string& sql) {
    ASSERT_OK(PostgresDb::Open(address(), "public", PostgresDb::Mode::kLease).value()->Script(sql));
  }

  TempDirectory directory_;
  std::string database_;
  int processes_ = 0;
};

TEST_F(PostgresRunStoresTest, ADatabaseBelongsToWhoeverOpensItFirst) {
  for (int i = 0; i < 2; ++i) EXPECT_OK(Open("north").status());
  EXPECT_CODE(Open("south").status(), kFailedPrecondition, absl::StrCat("the database ", database_, " at "));
  EXPECT_CODE(Open("south").status(), kFailedPrecondition,
              " belongs to the relay 'north', and this is the relay 'south'; name another database with --store");
  EXPECT_CODE(Open("").status(), kFailedPrecondition, "belongs to the relay 'north', and this is a coordinator;");
  EXPECT_OK(Open("north").status());
}

TEST_F(PostgresRunStoresTest, ACoordinatorsDatabaseIsNoRelays) {
  EXPECT_OK(Open("").status());
  EXPECT_CODE(Open("north").status(), kFailedPrecondition, "belongs to a coordinator, and this is the relay 'north';");
  EXPECT_OK(Open("").status());
}

TEST_F(PostgresRunStoresTest, RunsThatNobodyClaimedAreACoordinators) {
  Change("CREATE SCHEMA terse_run");
  EXPECT_CODE(Open("north").status(), kFailedPrecondition, "belongs to a coordinator");
  EXPECT_OK(Open("").status());
}

TEST_F(PostgresRunStoresTest, TheStateOfAClientHalfIsThereForTheNextProcess) {
  const auto a = Open("north").value(), b = Open("north").value();
  ASSERT_EQ(a->lease()->Take().value(), "");
  EXPECT_CODE(b->OpenUpstream().status(), kFailedPrecondition, "another process took the lease");
  const UpstreamFiles first = a->OpenUpstream().value();
  const auto state = ClientState::Open(first.directory, *first.files).value();
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
  ASSERT_OK(SealNumber(*state, 1));
  const std::string sealed = Describe(*state);
  a->lease()->Release();
  ASSERT_EQ(b->lease()->Take().value(), "");
  const UpstreamFiles second = b->OpenUpstream().value();
  EXPECT_EQ(Describe(*ClientState::Open(second.directory, *second.files).value()), sealed);
  EXPECT_THAT(b->Held().value(), ::testing::IsEmpty()) << "the state is no run";
  EXPECT_FALSE(state->Settle(true).ok());
}

TEST_F(PostgresRunStoresTest, AStateInTheDirectoryIsNotForgotten) {
  const std::string directory = directory_.Path("used");
  const auto stores = RunsInDirectories(directory);
  const UpstreamFiles upstream = stores->OpenUpstream().value();
  EXPECT_EQ(upstream.directory, directory + "/upstream");
  ASSERT_OK(OpenState(upstream.directory)->Begin(kLineage, kLineage, Durability::kStrict));
  EXPECT_CODE(RunsInPostgres(address(), directory, absl::Hours(1), "north").status(), kFailedPrecondition,
              "holds the state of a relay that is not in the store");
  EXPECT_OK(Open("south").status()) << "a refused process has claimed the database";
}

}  // namespace
}  // namespace terse
