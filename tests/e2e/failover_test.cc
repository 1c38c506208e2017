// Several coordinators on one PostgreSQL store: whichever serves is killed, or paused and woken up again, and the
// server is lost with all that it has. Others go on at the committed round, and no update is lost or counts twice.
// terse-failover-campaign does the same again and again.
#include <algorithm>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/failover_fleet.h"
#include "tests/e2e/fleet_conservation.h"
#include "tests/testing/postgres_pair.h"
#include "tests/testing/postgres_server.h"

namespace terse {
namespace {

using Fault = FailoverFleet::Fault;

constexpr int64_t kFewRounds = 120;

TEST(Failover, NothingIsLostAndNothingCountsTwice) {
  PostgresServer server;
  FailoverFleet fleet(server.address(), kFewRounds);
  ASSERT_NO_FATAL_FAILURE(fleet.Start());
  int64_t faults = 0;
  for (const Fault fault : {Fault::kKill, Fault::kStop, Fault::kKill}) {
    absl::Duration until_next;
    ASSERT_NO_FATAL_FAILURE(fleet.WaitForRounds(++faults * kFewRounds / 4));
    ASSERT_NO_FATAL_FAILURE(fleet.EndHolder(fault, &until_next));
  }
  std::string run_state;
  ASSERT_NO_FATAL_FAILURE(fleet.Finish(&run_state));
  fleet.ExpectWholeBooks(run_state);
}

TEST(Failover, AServerThatIsGoneForAWhileIsWaitedFor) {
  PostgresServer server;
  FailoverFleet fleet(server.address(), kFewRounds);
  ASSERT_NO_FATAL_FAILURE(fleet.Start());
  // Shorter and longer than the lease.
  for (const absl::Duration outage : {absl::Milliseconds(200), absl::Seconds(4)}) {
    absl::Duration until_next;
    ASSERT_NO_FATAL_FAILURE(fleet.WaitForRounds(std::max<int64_t>(fleet.Version(), 0) + kFewRounds / 4));
    ASSERT_NO_FATAL_FAILURE(fleet.LoseServerFor(outage, &server, &until_next));
  }
  std::string run_state;
  ASSERT_NO_FATAL_FAILURE(fleet.Finish(&run_state));
  fleet.ExpectWholeBooks(run_state);
}

TEST(Failover, ASynchronousStandbyHasAllThatAClientHeardOf) {
  PostgresPair pair(PostgresPair::Replication::kSynchronous);
  FailoverFleet fleet(pair.address(), kFewRounds);
  ASSERT_NO_FATAL_FAILURE(fleet.Start());
  ASSERT_NO_FATAL_FAILURE(fleet.WaitForRounds(kFewRounds / 2));
  absl::Duration until_next;
  int64_t lost = 0;
  ASSERT_NO_FATAL_FAILURE(fleet.LosePrimary(&pair, &until_next, &lost));
  EXPECT_EQ(lost, 0);
  std::string run_state;
  ASSERT_NO_FATAL_FAILURE(fleet.Finish(&run_state));
  fleet.ExpectWholeBooks(run_state);
}

// The rounds that the standby does not have are gone, and each client that knows of one hears RESET: it is counted, and
// the run goes on from what there is.
TEST(Failover, AnAsynchronousStandbyMayLackRoundsAndClientsAreReset) {
  PostgresPair pair(PostgresPair::Replication::kAsynchronous);
  FailoverFleet fleet(pair.address(), kFewRounds);
  ASSERT_NO_FATAL_FAILURE(fleet.Start());
  ASSERT_NO_FATAL_FAILURE(fleet.WaitForRounds(kFewRounds / 4));
  pair.CutOffStandby();
  ASSERT_NO_FATAL_FAILURE(fleet.WaitForRounds(kFewRounds / 2));
  absl::Duration until_next;
  int64_t lost = 0;
  ASSERT_NO_FATAL_FAILURE(fleet.LosePrimary(&pair, &until_next, &lost));
  EXPECT_GT(lost, 0);
  std::string run_state;
  ASSERT_NO_FATAL_FAILURE(fleet.Finish(&run_state));
  const std::string database = run_state + "/run.sqlite";
  EXPECT_EQ(QueryNumber(database, "SELECT version FROM head"), kFewRounds);
  EXPECT_EQ(QueryNumber(database, "SELECT sum(resets) FROM clients"), kClients);
}

}  // namespace
}  // namespace terse
