// Who has the lease of a store, and who takes it when.
#include "storage/postgres_lease.h"

#include <memory>
#include <string>

#include "tests/storage/postgres_testing.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

constexpr absl::Duration kLong = absl::Hours(1);

class PostgresLeaseTest : public ::testing::Test {
 protected:
  PostgresLeaseTest() { Change("UPDATE lease SET expires_us = 0"); }

  static const std::string& address() {
    static const auto& address = *new std::string(PostgresServer::Shared().address());
    return address;
  }
  // Runs a statement on a session of nobody's.
  void Change(const std::string& sql) {
    // Makes the table where it is missing.
    if (!is_made_) PostgresLease(address(), "nobody", kLong).Take().IgnoreError();
    is_made_ = true;
    const auto db = PostgresDb::Open(address(), "terse", PostgresDb::Mode::kLease).value();
    ASSERT_OK(db->Script(sql));
  }
  // Ends the session of the holder, as its process's death does, and returns once the server knows.
  void EndHoldersSession() {
    Change("SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2");
  }

  bool is_made_ = false;
  PostgresLease a_{address(), "a", kLong}, b_{address(), "b", kLong};
};

TEST_F(PostgresLeaseTest, BelongsToOneUntilItsEnd) {
  PostgresLease brief(address(), "brief", absl::Milliseconds(200));
  EXPECT_EQ(brief.Take().value(), "");
  EXPECT_EQ(b_.Take().value(), "brief");
  EXPECT_TRUE(Soon([&] { return b_.Take().value() == ""; }));
  EXPECT_CODE(brief.Renew(), kFailedPrecondition, "another process took the lease");
  EXPECT_OK(b_.Renew());
}

TEST_F(PostgresLeaseTest, IsFreeAtOnceWhenItIsGivenBack) {
  EXPECT_EQ(a_.Take().value(), "");
  EXPECT_EQ(b_.Take().value(), "a");
  a_.Release();
  EXPECT_EQ(b_.Take().value(), "");
}

TEST_F(PostgresLeaseTest, IsTakenAtOnceFromAHolderThatDied) {
  EXPECT_EQ(a_.Take().value(), "");
  EXPECT_EQ(b_.Take().value(), "a");
  EndHoldersSession();
  EXPECT_EQ(b_.Take().value(), "");
  EXPECT_CODE(a_.Renew(), kUnavailable, "lost");
  EXPECT_CODE(a_.Renew(), kFailedPrecondition, "another process took the lease");
}

TEST_F(PostgresLeaseTest, WhoDidNotSeeTheHolderWaits) {
  EXPECT_EQ(a_.Take().value(), "");
  EndHoldersSession();
  EXPECT_EQ(b_.Take().value(), "a");
  EXPECT_EQ(b_.Take().value(), "a");
  // The holder comes back, and is seen again.
  EXPECT_CODE(a_.Renew(), kUnavailable, "lost");
  EXPECT_OK(a_.Renew());
  EXPECT_EQ(b_.Take().value(), "a");
  EndHoldersSession();
  EXPECT_EQ(b_.Take().value(), "");
}

TEST_F(PostgresLeaseTest, OutlivesARestartOfTheServer) {
  EXPECT_EQ(a_.Take().value(), "");
  EXPECT_EQ(b_.Take().value(), "a");
  PostgresServer::Shared().Crash();
  PostgresServer::Shared().Start();
  EXPECT_CODE(b_.Take().status(), kUnavailable, "lost");
  EXPECT_EQ(b_.Take().value(), "a") << "nobody saw the holder go";
  EXPECT_CODE(a_.Renew(), kUnavailable, "lost");
  EXPECT_OK(a_.Renew());
  EXPECT_EQ(b_.Take().value(), "a");
}

// As after a server was lost with what it had not given to its standby: both had the lease of one number.
TEST_F(PostgresLeaseTest, OfAHistoryThatIsLostIsWorthNothing) {
  EXPECT_EQ(a_.Take().value(), "");
  Change("UPDATE lease SET holder = 'b'");
  const auto db = PostgresDb::Open(address(), "terse", PostgresDb::Mode::kLease).value();
  EXPECT_CODE(db->InTransaction([&] { return a_.CheckHeld(*db); }), kFailedPrecondition, "another process");
  EXPECT_CODE(a_.Renew(), kFailedPrecondition, "another process took the lease");
}

}  // namespace
}  // namespace terse
