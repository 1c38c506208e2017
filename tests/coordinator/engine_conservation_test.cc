// Conservation (invariants I1, I2, I3, I5 of docs/PROTOCOL.md) under random faults: connections cut anywhere, repeated
// updates, clients and coordinators that die at any call to the disk, and state directories that go back in time.
// TERSE_SCHEDULES and TERSE_FIRST_SEED in the environment widen the search.
#include <cstdlib>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/testing/fleet_simulation.h"

namespace terse {
namespace {

constexpr int64_t kClients = 3;
constexpr int64_t kSteps = 300;

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  int64_t value = 0;
  const char* text = std::getenv(name);
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

RunConfig Config() {
  RunConfig config = GridRunConfig(kClients, 1'000'000);
  config.rounds.quorum = 2;
  return config;
}

// What happened, over all schedules: a schedule that never does something proves nothing about it.
struct Coverage {
  int64_t schedules = 0;
  int64_t applied = 0, not_applied = 0, aborted = 0, resets = 0;
  int64_t cuts = 0, client_deaths = 0, coordinator_deaths = 0, store_faults = 0, duplicates = 0, rollbacks = 0;
};

class Schedule {
 public:
  Schedule(uint64_t seed, bool with_rollback, Coverage* coverage)
      : random_(seed), with_rollback_(with_rollback), coverage_(coverage), fleet_(Config(), kClients) {}

  absl::Status Run() {
    TERSE_RETURN_IF_ERROR(fleet_.StartAll());
    for (int64_t step = 0; step < kSteps; ++step) {
      TERSE_RETURN_IF_ERROR(Step());
    }
    TERSE_RETURN_IF_ERROR(Recover());
    for (int64_t i = 0; i < kClients; ++i) TERSE_RETURN_IF_ERROR(CheckClient(i));
    TERSE_RETURN_IF_ERROR(Count());
    return CheckReplay(fleet_.store(), fleet_.codec(), GridInitialWeights());
  }

 private:
  // An error that the armed fault explains is the coordinator's death; any other is the test's failure.
  absl::Status Survive(const absl::Status& status) {
    if (status.ok() || !fault_fired_) return status;
    ++coverage_->store_faults;
    fault_fired_ = false;
    return absl::OkStatus();
  }

  absl::Status Step() {
    if (!fleet_.coordinator_up()) {
      TERSE_RETURN_IF_ERROR(fleet_.StartCoordinator());
      return absl::OkStatus();
    }
    const int64_t i = static_cast<int64_t>(random_.Below(kClients));
    const uint64_t dice = random_.Below(1000);
    if (dice < 780) return Survive(fleet_.DeliverAny(&random_).status());
    if (dice < 860) return Survive(Revive(i));
    if (dice < 960) return HurtClient(i, dice - 860);
    return HurtCoordinator(dice - 960);
  }

  absl::Status Revive(int64_t i) {
    if (fleet_.connected(i)) return absl::OkStatus();
    if (!fleet_.client_up(i)) TERSE_RETURN_IF_ERROR(fleet_.StartClient(i));
    return fleet_.Connect(i);
  }

  absl::Status HurtClient(int64_t i, uint64_t dice) {
    if (!fleet_.connected(i)) return absl::OkStatus();
    if (dice < 20) {
      ++coverage_->cuts;
      fleet_.Cut(i, static_cast<int64_t>(random_.Below(3)));
    } else if (dice < 50) {
      ++coverage_->cuts;
      fleet_.link(i)->CutAtSend(1 + static_cast<int64_t>(random_.Below(2)), random_.Below(2) == 0);
    } else if (dice < 70) {
      ++coverage_->duplicates;
      fleet_.link(i)->DuplicateNextUpdate();
    } else {
      ++coverage_->client_deaths;
      fleet_.KillClient(i);
      if (with_rollback_) TimeTravel(i);
    }
    return absl::OkStatus();
  }

  void TimeTravel(int64_t i) {
    if (random_.Below(3) > 0 && fleet_.Rollback(i)) {
      ++coverage_->rollbacks;
    } else {
      fleet_.Snapshot(i);
    }
  }

  absl::Status HurtCoordinator(uint64_t dice) {
    if (dice < 8) {
      ++coverage_->coordinator_deaths;
      fleet_.KillCoordinator();
      fault_fired_ = false;
      return absl::OkStatus();
    }
    if (dice < 24) {
      ArmFault();
      return absl::OkStatus();
    }
    return Survive(fleet_.PassDeadline());
  }

  // The coordinator dies at one of its next calls to the store, before or after its effect.
  void ArmFault() {
    const bool at_after = random_.Below(2) == 0;
    fleet_.store()->fault = [this, at_after, left = static_cast<int64_t>(random_.Below(12))](absl::string_view,
                                                                                             bool after) mutable {
      if (after == at_after) --left;
      if (left >= 0) return absl::OkStatus();
      fault_fired_ = true;
      return absl::InternalError("the test stopped the coordinator here");
    };
  }

  // I5: when faults stop, the next round commits. Then everyone checks in once more, so that each verdict is known.
  absl::Status Recover() {
    fleet_.KillCoordinator();
    fault_fired_ = false;
    TERSE_RETURN_IF_ERROR(fleet_.StartCoordinator());
    for (int64_t i = 0; i < kClients; ++i) TERSE_RETURN_IF_ERROR(Revive(i));
    const int64_t before = fleet_.engine()->View().head.version;
    for (int64_t step = 0; fleet_.engine()->View().head.version < before + 2; ++step) {
      if (step > 2000) return absl::InternalError("no round commits although nothing fails any more");
      TERSE_ASSIGN_OR_RETURN(const bool moved, fleet_.DeliverAny(nullptr));
      // Updates that an old state makes end its session; the client comes back. A round may need its deadline once.
      for (int64_t i = 0; i < kClients; ++i) TERSE_RETURN_IF_ERROR(Revive(i));
      if (!moved) TERSE_RETURN_IF_ERROR(fleet_.PassDeadline());
    }
    for (int64_t i = 0; i < kClients; ++i) fleet_.Cut(i, 0);
    for (int64_t i = 0; i < kClients; ++i) {
      TERSE_RETURN_IF_ERROR(fleet_.Connect(i));
      TERSE_RETURN_IF_ERROR(fleet_.DeliverUp(i).status());
      TERSE_RETURN_IF_ERROR(fleet_.DeliverDown(i).status());
      fleet_.KillClient(i);
    }
    return absl::OkStatus();
  }

  absl::Status CheckClient(int64_t i) {
    TERSE_RETURN_IF_ERROR(fleet_.StartClient(i));
    TERSE_ASSIGN_OR_RETURN(const ClientRecord record,
                           fleet_.store()->RegisterClient(fleet_.client_name(i), fleet_.clock()->NowMicros()));
    if (record.resets > 0 && !fleet_.rolled_back(i)) return absl::InternalError("a client lost work without cause");
    coverage_->applied += record.updates_applied;
    coverage_->not_applied += record.updates_not_applied;
    coverage_->resets += record.resets;
    return CheckConservation(fleet_.store(), fleet_.codec(), record.id, fleet_.state(i)->state(), fleet_.baseline(i));
  }

  absl::Status Count() {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundRecord> last, fleet_.store()->LastRound());
    TERSE_ASSIGN_OR_RETURN(const std::vector<RoundRecord> rounds, fleet_.store()->Rounds(1, last->id));
    for (const RoundRecord& round : rounds) coverage_->aborted += round.state == RoundState::kAborted;
    return absl::OkStatus();
  }

  Random random_;
  const bool with_rollback_;
  Coverage* const coverage_;
  bool fault_fired_ = false;
  FleetSimulation fleet_;
};

Coverage RunSchedules(int64_t count, bool with_rollback) {
  Coverage coverage;
  const int64_t first = FromEnvironment("TERSE_FIRST_SEED", 1);
  for (int64_t k = 0; k < FromEnvironment("TERSE_SCHEDULES", count); ++k) {
    const absl::Status status = Schedule(first + k, with_rollback, &coverage).Run();
    ++coverage.schedules;
    EXPECT_EQ(status, absl::OkStatus()) << "seed " << first + k;
    if (!status.ok()) break;
  }
  std::cout << absl::StrCat("applied ", coverage.applied, ", not applied ", coverage.not_applied, ", aborted rounds ",
                            coverage.aborted, ", resets ", coverage.resets, "; cuts ", coverage.cuts,
                            ", client deaths ", coverage.client_deaths, ", coordinator deaths ",
                            coverage.coordinator_deaths, ", of them at a call to the store ", coverage.store_faults,
                            ", duplicates ", coverage.duplicates, ", rollbacks ", coverage.rollbacks, "\n");
  return coverage;
}

TEST(EngineConservation, NothingIsLostOrCountedTwice) {
  const Coverage coverage = RunSchedules(150, /*with_rollback=*/false);
  EXPECT_GT(coverage.applied, 5 * coverage.schedules);
  EXPECT_GT(coverage.not_applied, 0);
  EXPECT_GT(coverage.aborted, 0);
  EXPECT_EQ(coverage.resets, 0);
  EXPECT_GT(coverage.store_faults, coverage.schedules);
}

TEST(EngineConservation, StateThatGoesBackInTimeIsReset) {
  const Coverage coverage = RunSchedules(150, /*with_rollback=*/true);
  EXPECT_GT(coverage.rollbacks, 0);
  EXPECT_GT(coverage.resets, 0);
}

}  // namespace
}  // namespace terse
