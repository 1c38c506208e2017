// A fleet of grid clients with several coordinators on one PostgreSQL store, whose holder of the lease is killed or
// paused, or whose server is lost; and its books at the end.
#ifndef TERSE_TESTS_E2E_FAILOVER_FLEET_H_
#define TERSE_TESTS_E2E_FAILOVER_FLEET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "storage/postgres_db.h"
#include "tests/e2e/fleet_processes.h"
#include "tests/testing/postgres_pair.h"
#include "tests/testing/postgres_server.h"

namespace terse {

// Failures are GoogleTest's, also outside of its tests. After a fatal one the fleet is of no more use.
class FailoverFleet {
 public:
  static constexpr int kCoordinators = 3;

  // Whether a coordinator that serves dies, or is paused and wakes up once another one has committed a round.
  enum class Fault { kKill, kStop };

  // `store` is what --store takes, and the run has so many rounds. Processes know each other by their defaults, except
  // that the lease lasts a second.
  FailoverFleet(std::string store, int64_t rounds);

  // Starts everybody; returns once the first coordinator serves.
  void Start();
  // Waits until there are so many committed rounds.
  void WaitForRounds(int64_t rounds);
  // Does that to the one that serves, and starts it again as a standby. `*until_next` is the time from then to the
  // first round that another one committed.
  void EndHolder(Fault fault, absl::Duration* until_next);
  // Loses the primary and promotes its standby. `*until_next` is the time from then to the next committed round, and
  // `*lost` the committed rounds that the new primary does not have.
  void LosePrimary(PostgresPair* pair, absl::Duration* until_next, int64_t* lost);
  // Takes all of the server's processes away for so long. `*until_next` is the time from its return to the next
  // committed round.
  void LoseServerFor(absl::Duration outage, PostgresServer* server, absl::Duration* until_next);
  // Waits for the end of the run, ends the coordinators, and copies the run into a directory, as SQLite.
  void Finish(std::string* run_state);
  // Expects that what was applied and what is left is what was trained, bit for bit, in a run that has ended.
  void ExpectWholeBooks(const std::string& run_state) const;

  // Committed rounds; -1 when the store cannot be asked, or has no run yet.
  int64_t Version();

 private:
  struct Member {
    std::unique_ptr<Process> process;
    int starts = 0;
  };

  // Starts those again that ended because another one had taken the lease, as their service manager does.
  void ReviveCoordinators();
  void StartCoordinator(int index, const std::vector<std::string>& extra = {});
  void StartClient(int index);
  std::string ClientStateOf(int index) const;
  // The coordinator whose process has the lease, by its index; -1: none of them.
  int Holder();
  // Waits until `*until_next` ends with a version above this one.
  void AwaitRoundAfter(int64_t version, absl::Time begin, absl::Duration* until_next);
  // What the coordinators and clients said last.
  std::string Logs() const;
  // A session that looks. Who takes the lease ends other sessions than such a one.
  absl::StatusOr<PostgresDb*> Look();

  const std::string store_;
  const int64_t rounds_;
  ScratchDirectory directory_;
  std::string addresses_[kCoordinators];
  std::unique_ptr<PostgresDb> look_;
  Member coordinators_[kCoordinators];
  std::vector<std::unique_ptr<Process>> clients_;
};

}  // namespace terse

#endif  // TERSE_TESTS_E2E_FAILOVER_FLEET_H_
