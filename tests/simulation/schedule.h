// One schedule of the simulation: a fleet, a run and everything that happens to them, all from one seed. The same seed
// gives the same schedule, bit for bit, in every build with TERSE_FAULTS.
//
// A connection keeps the order of what it carries, as TCP does. Everything else may happen: connections break at any
// message, in either direction; messages of an old connection arrive after those of a new one; updates come twice; a
// client cannot be reached for a while; clocks jump; processes die at any failpoint and at any operation of their disk,
// with or without a power loss; disks fill up and fail; clients' disks go back in time; operators interfere.
#ifndef TERSE_TESTS_SIMULATION_SCHEDULE_H_
#define TERSE_TESTS_SIMULATION_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/random.h"
#include "tests/simulation/books.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/totals.h"
#include "tests/testing/fleet_simulation.h"

namespace terse {

struct ScheduleResult {
  Violation violation;  // the first
  Totals totals;
  uint64_t trace = 0;  // a hash of everything that happened
};

class Schedule : private FleetFaults {
 public:
  // `print`: a line to stdout for everything that happens.
  explicit Schedule(uint64_t seed, bool print = false);

  // Faults for a while, then recovery without any; checks I2 and I3 after each start of the coordinator, and all of the
  // invariants at the end. Once. Uses the thread's failpoint hook.
  ScheduleResult Run();

 private:
  enum class DiskTrap { kNone, kDeath, kError, kFull };
  // The faults that are planned for a process, and those that it has had.
  struct Victim {
    bool hurt = false;             // an error since its start is explained
    int64_t failpoints_left = -1;  // it dies at the so many-th failpoint from now
    absl::string_view failpoint;   // or at this one
    DiskTrap trap = DiskTrap::kNone;
    int64_t operations_left = 0;     // before the trap
    int64_t operations_failing = 0;  // in the trap
    int64_t unreachable_until = 0;   // step
    bool reset_undone = false;       // its disk went back behind a RESET
  };

  // FleetFaults.
  absl::Status OnFailpoint(int64_t process, absl::string_view name) override;
  int OnDisk(int64_t process, DiskOp op, const std::string& path) override;
  int64_t LastWords(int64_t client) override { return static_cast<int64_t>(random_.Below(4)); }
  void OnEvent(absl::string_view what, int64_t process, uint64_t detail) override;

  // Steps of the schedule.
  void Step();
  void Deliver();
  void Revive(int64_t i);
  void HurtClient(int64_t i);
  void HurtCoordinator();
  void PassTime();
  void Operate();
  void KillClient(int64_t i);
  void TimeTravel(int64_t i);
  void Arm(int64_t process);
  void ArmDisk(int64_t process, DiskTrap trap);
  void Disarm(int64_t process);
  void StartCoordinator();

  // After the last fault.
  void Recover();
  void CheckInOnce(int64_t i);
  void CheckEverything();
  void Count();
  // Remembers the rounds as they are durable now.
  void NoteRounds();

  Victim& VictimOf(int64_t process) { return victims_[process + 1]; }
  bool Explained(int64_t process) { return VictimOf(process).hurt; }
  bool Reachable(int64_t i) { return step_ >= VictimOf(i).unreachable_until; }
  bool IsAdmitted(int64_t i) const { return i < scenario_.config.rounds.clients; }
  // Decides what is left on the disk of a process that is down.
  void MaybeLosePower(int64_t process);
  // An error of the coordinator that no fault explains is a violation.
  void Survive(const absl::Status& status, absl::string_view what);
  // The same for a client whose session ended, which then starts again.
  void SurviveSession(int64_t i);
  void Fail(Harm harm, std::string what);
  void Take(Violation violation);
  bool failed() const { return result_.violation.found(); }
  int64_t PickClient() { return static_cast<int64_t>(random_.Below(scenario_.clients)); }
  bool Chance(double probability) { return random_.Uniform() < probability; }

  Random random_;
  const Scenario scenario_;
  const bool print_;
  std::vector<Victim> victims_;
  History history_;
  bool faults_on_ = false;
  int64_t step_ = 0;
  ScheduleResult result_;
  FleetSimulation fleet_;
};

}  // namespace terse

#endif  // TERSE_TESTS_SIMULATION_SCHEDULE_H_
