#include "tests/simulation/schedule.h"

#include <errno.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/allow_list.h"

namespace terse {
namespace {

constexpr int64_t kSteps = 240;
constexpr int64_t kStepsToRecover = 3000;
constexpr double kPowerLoss = 0.4;  // of a process that is down before it starts again

uint64_t Mix(uint64_t hash, absl::string_view bytes) {
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3ULL;
  return hash;
}

bool Concerns(absl::string_view failpoint, int64_t process) {
  return absl::StartsWith(failpoint, "file.") ||
         absl::StartsWith(failpoint, process == kCoordinator ? "coordinator." : "client.");
}

// A coordinator's disk with a run of which nothing has happened yet: making one takes longer than a whole schedule.
const MemoryDirectory& FreshRun() {
  static const auto* const disk = [] {
    FleetSimulation fleet(GridRunConfig(1, 1), 0);
    if (fleet.StartCoordinator().ok()) fleet.StopCoordinator().IgnoreError();
    return new std::shared_ptr<const MemoryDirectory>(fleet.disk(kCoordinator).Snapshot());
  }();
  return **disk;
}

}  // namespace

Schedule::Schedule(uint64_t seed, bool print)
    : random_(seed),
      scenario_(DrawScenario(&random_)),
      print_(print),
      victims_(scenario_.clients + 1),
      fleet_(scenario_.config, scenario_.clients, this, seed) {
  result_.trace = 0xcbf29ce484222325ULL;
  fleet_.set_clients_start(scenario_.make_start);
  if (scenario_.starts_up) fleet_.disk(kCoordinator).Restore(FreshRun());
  fleet_.clock()->set_step(scenario_.clock_step);
  if (scenario_.small_parts) fleet_.set_catch_up_bytes(1);
  if (scenario_.most_log > 0) fleet_.set_most_log_bytes(scenario_.most_log);
  if (scenario_.history_room > 0) fleet_.set_history_room(scenario_.history_room);
}

ScheduleResult Schedule::Run() {
  faults_on_ = !scenario_.starts_up;
  if (faults_on_) Arm(kCoordinator);
  StartCoordinator();
  for (int64_t i = 0; i < scenario_.clients; ++i) Revive(i);
  faults_on_ = true;
  for (step_ = 0; step_ < kSteps && !failed(); ++step_) Step();
  if (!failed()) Recover();
  if (!failed()) CheckEverything();
  ++result_.totals.schedules;
  result_.totals.lost += result_.violation.harm == Harm::kLost;
  result_.totals.doubled += result_.violation.harm == Harm::kDoubled;
  faults_on_ = false;
  return result_;
}

void Schedule::OnEvent(absl::string_view what, int64_t process, uint64_t detail) {
  result_.trace = Mix(result_.trace, what);
  result_.trace = (result_.trace ^ static_cast<uint64_t>(process)) * 0x100000001b3ULL;
  result_.trace = (result_.trace ^ detail) * 0x100000001b3ULL;
  if (what == "dies") ++(process == kCoordinator ? result_.totals.coordinator_kills : result_.totals.client_kills);
  if (!print_) return;
  const std::string who = process == kCoordinator ? "coordinator" : fleet_.client_name(process);
  const std::string line = absl::StrCat("step ", step_, "  ", who, ": ", what, " ", detail, "\n");
  std::fputs(line.c_str(), stdout);
}

absl::Status Schedule::OnFailpoint(int64_t process, absl::string_view name) {
  if (!fleet_.disk(process).running()) return absl::AbortedError("the process is dead");
  OnEvent(name, process, 0);
  ++result_.totals.failpoints[FailpointIndex(name)];
  if (name == "coordinator.batch.committed") NoteRounds();
  // Closed and committed in one transaction, it is never closed by itself. A mutant makes it so.
  if (name == "coordinator.close.done" && *IsDurablyClosed(fleet_)) {
    history_[fleet_.engine()->View().round] = RoundState::kClosed;
  }
  Victim& victim = VictimOf(process);
  const bool counted = victim.failpoints_left >= 0 && victim.failpoints_left-- == 0;
  if (!faults_on_ || (!counted && victim.failpoint != name)) return absl::OkStatus();
  victim.failpoint = "";
  victim.hurt = true;
  fleet_.Die(process);
  return absl::AbortedError(absl::StrCat("died at ", name));
}

void Schedule::NoteRounds() {
  if (!fleet_.coordinator_up()) return;
  const int64_t first = history_.empty() ? 1 : history_.rbegin()->first;
  const std::vector<RoundRecord> rounds =
      *fleet_.Quietly([&] { return fleet_.store()->Rounds(first, std::numeric_limits<int64_t>::max()); });
  for (const RoundRecord& round : rounds) history_[round.id] = round.state;
}

int Schedule::OnDisk(int64_t process, DiskOp op, const std::string& path) {
  Victim& victim = VictimOf(process);
  if (!faults_on_ || victim.trap == DiskTrap::kNone || --victim.operations_left >= 0) return 0;
  victim.hurt = true;
  if (victim.trap == DiskTrap::kDeath) {
    victim.trap = DiskTrap::kNone;
    fleet_.Die(process);
    return EIO;
  }
  const bool grows =
      op == DiskOp::kWrite || op == DiskOp::kOpen || op == DiskOp::kRename || op == DiskOp::kMakeDirectory;
  const bool full = victim.trap == DiskTrap::kFull;
  if (--victim.operations_failing <= 0) victim.trap = DiskTrap::kNone;
  if (full && !grows) return 0;
  ++result_.totals.disk_faults;
  OnEvent(full ? "disk full" : "disk error", process, static_cast<uint64_t>(op));
  return full ? ENOSPC : EIO;
}

void Schedule::Step() {
  // A session may also have ended while the coordinator stopped.
  for (int64_t client = 0; client < scenario_.clients; ++client) SurviveSession(client);
  const int64_t i = PickClient();
  if (!fleet_.coordinator_up() && Chance(0.5)) return StartCoordinator();
  const uint64_t dice = random_.Below(1000);
  if (dice < 690) {
    Deliver();
  } else if (dice < 770) {
    Revive(i);
  } else if (dice < 880) {
    HurtClient(i);
  } else if (dice < 930) {
    HurtCoordinator();
  } else if (dice < 975) {
    PassTime();
  } else if (dice < 992) {
    Operate();
  } else {
    fleet_.hold_background(Chance(0.5));
  }
}

// One message of a connection that works, drawn at random; where nothing moves, time does.
void Schedule::Deliver() {
  const int64_t ways = 2 * scenario_.clients + 1;
  const int64_t start = static_cast<int64_t>(random_.Below(ways));
  for (int64_t k = 0; k < ways; ++k) {
    const int64_t way = (start + k) % ways;
    const int64_t i = way / 2;
    absl::StatusOr<bool> moved = false;
    if (way == 2 * scenario_.clients) {
      moved = fleet_.DeliverFromBroken(&random_);
    } else if (Reachable(i)) {
      moved = way % 2 == 0 ? fleet_.DeliverUp(i) : fleet_.DeliverDown(i);
      SurviveSession(i);
    }
    if (!moved.ok()) return Survive(moved.status(), "a delivery");
    if (*moved) return;
  }
  if (Chance(0.5)) return Revive(PickClient());
  if (fleet_.coordinator_up() && Chance(0.3)) Survive(fleet_.PassNextDeadline().status(), "a timer");
}

void Schedule::Revive(int64_t i) {
  if (fleet_.connected(i) || !Reachable(i)) return;
  if (!fleet_.client_up(i)) {
    MaybeLosePower(i);
    VictimOf(i).hurt = false;
    const absl::Status started = fleet_.StartClient(i);
    if (!started.ok()) {
      if (!Explained(i)) Fail(Harm::kOther, absl::StrCat("client ", i, " does not start: ", started.ToString()));
      fleet_.KillClient(i);
      return;
    }
  }
  if (!fleet_.coordinator_up()) return;
  fleet_.Connect(i);
  SurviveSession(i);
}

void Schedule::SurviveSession(int64_t i) {
  if (fleet_.connected(i) || !fleet_.client_up(i)) return;
  const absl::Status& ended = fleet_.last_result(i);
  if (ended.ok() || absl::IsUnavailable(ended)) return;
  const bool uninvited = !IsAllowed(fleet_.config().clients.allow, fleet_.client_name(i));
  // Late words of the process before, of a connection that was accepted last, look like another client's.
  const bool mistaken = absl::StrContains(ended.message(), "took the name");
  // Somebody starts a refused client again and again.
  const bool refused = absl::IsFailedPrecondition(ended) && (uninvited || mistaken);
  if (!refused && !Explained(i)) Fail(Harm::kOther, absl::StrCat("client ", i, " ends: ", ended.ToString()));
  fleet_.KillClient(i);
}

void Schedule::HurtClient(int64_t i) {
  const uint64_t dice = random_.Below(110);
  if (dice < 35) return Arm(i);
  if (dice < 50) return KillClient(i);
  if (dice < 60) {
    if (!fleet_.client_up(i)) return;
    ++result_.totals.orderly_stops;
    const absl::Status stopped = fleet_.StopClient(i);
    if (!stopped.ok() && !Explained(i)) Fail(Harm::kOther, absl::StrCat("client ", i, " stops: ", stopped.ToString()));
    if (!fleet_.disk(i).running() || !stopped.ok()) fleet_.KillClient(i);
    return;
  }
  if (!fleet_.connected(i)) return;
  if (dice < 70) {
    ++result_.totals.partitions;
    VictimOf(i).unreachable_until = step_ + 5 + static_cast<int64_t>(random_.Below(40));
    // Both ends notice, or the connection only rests.
    if (Chance(0.5)) return;
  }
  if (dice < 85) {
    ++result_.totals.cuts;
    fleet_.Cut(i, static_cast<int64_t>(random_.Below(3)), static_cast<int64_t>(random_.Below(3)));
    SurviveSession(i);
  } else if (dice < 97) {
    ++result_.totals.cuts;
    fleet_.link(i)->CutAtSend(1 + static_cast<int64_t>(random_.Below(2)), random_.Below(2) == 0);
  } else {
    ++result_.totals.duplicates;
    fleet_.link(i)->DuplicateNextUpdate();
  }
}

void Schedule::KillClient(int64_t i) {
  if (!fleet_.client_up(i)) return;
  fleet_.KillClient(i);
  if (scenario_.rollbacks) TimeTravel(i);
}

void Schedule::TimeTravel(int64_t i) {
  const Baseline before = fleet_.baseline(i);
  if (random_.Below(3) > 0 && fleet_.Rollback(i)) {
    ++result_.totals.rollbacks;
    const Baseline& after = fleet_.baseline(i);
    VictimOf(i).reset_undone |= before.generation != after.generation || before.version != after.version;
  } else {
    fleet_.Snapshot(i);
  }
}

void Schedule::HurtCoordinator() {
  if (!fleet_.coordinator_up()) return;
  const uint64_t dice = random_.Below(100);
  if (dice < 65) {
    Arm(kCoordinator);
  } else if (dice < 92) {
    fleet_.KillCoordinator();
  } else {
    ++result_.totals.orderly_stops;
    Survive(fleet_.StopCoordinator(), "an orderly stop");
  }
}

void Schedule::Arm(int64_t process) {
  Victim& victim = VictimOf(process);
  const uint64_t dice = random_.Below(10);
  if (dice < 3) {
    victim.failpoints_left = static_cast<int64_t>(random_.Below(8));
  } else if (dice < 6) {
    do {
      victim.failpoint = kFailpoints[random_.Below(std::size(kFailpoints))];
    } while (!Concerns(victim.failpoint, process));
  } else {
    ArmDisk(process, dice < 8 ? DiskTrap::kDeath : dice < 9 ? DiskTrap::kError : DiskTrap::kFull);
  }
}

void Schedule::ArmDisk(int64_t process, DiskTrap trap) {
  Victim& victim = VictimOf(process);
  victim.trap = trap;
  victim.operations_left = static_cast<int64_t>(random_.Below(60));
  // One failure, or a disk that is in trouble for a while.
  victim.operations_failing = Chance(0.7) ? 1 : static_cast<int64_t>(random_.Below(60));
}

// An error that already happened to the process still explains how it ends, so `hurt` is kept.
void Schedule::Disarm(int64_t process) {
  const bool hurt = Explained(process);
  VictimOf(process) = Victim();
  VictimOf(process).hurt = hurt;
}

void Schedule::PassTime() {
  if (Chance(0.3)) {
    ++result_.totals.clock_jumps;
    fleet_.clock()->Set(random_.Uniform(-60, 120));
  }
  if (fleet_.coordinator_up()) Survive(fleet_.PassNextDeadline().status(), "a timer");
}

void Schedule::Operate() {
  if (!fleet_.coordinator_up()) return;
  ++result_.totals.operator_acts;
  const uint64_t dice = random_.Below(7);
  const int64_t until =
      Chance(0.5) ? 0 : fleet_.clock()->NowMicros() + 1'000'000 * static_cast<int64_t>(random_.Below(40));
  Event event = dice < 1   ? Event(PauseRequested{"the test pauses"})
                : dice < 4 ? Event(ResumeRequested{})
                : dice < 6 ? Event(AbortRequested{"the test gives up"})
                           : Event(SetAsideRequested{PickClient(), until, "the test says so"});
  Survive(fleet_.Handle(std::move(event)), "an operator's act");
}

void Schedule::MaybeLosePower(int64_t process) {
  if (!faults_on_ || !Chance(kPowerLoss)) return;
  ++result_.totals.power_losses;
  OnEvent("loses power", process, 0);
  fleet_.disk(process).LosePower(&random_);
}

void Schedule::StartCoordinator() {
  MaybeLosePower(kCoordinator);
  VictimOf(kCoordinator).hurt = false;
  const absl::Status started = fleet_.StartCoordinator();
  Survive(started, "a start");
  if (started.ok()) Take(CheckCoordinator(fleet_, &history_));
}

void Schedule::Survive(const absl::Status& status, absl::string_view what) {
  if (status.ok() || Explained(kCoordinator)) return;
  Fail(Harm::kOther, absl::StrCat("the coordinator fails in ", what, ": ", status.ToString()));
}

void Schedule::Fail(Harm harm, std::string what) { Take({harm, std::move(what)}); }

void Schedule::Take(Violation violation) {
  if (violation.found() && !failed()) result_.violation = std::move(violation);
}

// I5: when faults stop, the next round commits.
void Schedule::Recover() {
  faults_on_ = false;
  for (int64_t process = kCoordinator; process < scenario_.clients; ++process) Disarm(process);
  fleet_.hold_background(false);
  if (fleet_.coordinator_up()) fleet_.KillCoordinator();
  for (int64_t i = scenario_.faithful; i < scenario_.clients; ++i) KillClient(i);
  StartCoordinator();
  if (failed()) return;
  Survive(fleet_.Handle(ResumeRequested{}), "an operator's act");
  const int64_t before = fleet_.engine()->View().head.version;
  for (step_ = kSteps; !failed(); ++step_) {
    const EngineView view = fleet_.engine()->View();
    if (view.ended || view.head.version > before) return;
    if (step_ > kSteps + kStepsToRecover) {
      return Fail(Harm::kOther, absl::StrCat("I5: no round commits although nothing fails any more; ", view.phase,
                                             ", round ", view.round));
    }
    // Updates that an old state makes end its session; the client comes back.
    for (int64_t i = 0; i < scenario_.faithful; ++i) Revive(i);
    const absl::StatusOr<bool> moved = fleet_.DeliverAny(nullptr);
    for (int64_t i = 0; i < scenario_.clients; ++i) SurviveSession(i);
    Survive(moved.status(), "a delivery");
    if (failed() || *moved) continue;
    Survive(fleet_.PassNextDeadline().status(), "a timer");
  }
}

// Checks in once more, so that each verdict is known, and goes.
void Schedule::CheckInOnce(int64_t i) {
  if (fleet_.connected(i)) fleet_.Cut(i, 0);
  Revive(i);
  if (failed()) return;
  Survive(fleet_.DeliverUp(i).status(), "the last check-in");
  Survive(fleet_.DeliverDown(i).status(), "the last welcome");
  const absl::Status stopped = fleet_.StopClient(i);
  if (!stopped.ok()) Fail(Harm::kOther, absl::StrCat("client ", i, " stops: ", stopped.ToString()));
}

void Schedule::CheckEverything() {
  for (int64_t i = 0; i < scenario_.clients && !failed(); ++i) {
    if (!IsAdmitted(i)) continue;
    CheckInOnce(i);
    const absl::Status started = failed() ? absl::OkStatus() : fleet_.StartClient(i);
    if (!started.ok()) Fail(Harm::kOther, absl::StrCat("client ", i, " does not start: ", started.ToString()));
    // Relaxed durability promises no conservation: a process that dies takes its residual along.
    const bool promised = scenario_.config.durability == Durability::kStrict;
    if (!failed() && promised) Take(CheckClient(fleet_, i, {fleet_.rolled_back(i), VictimOf(i).reset_undone}));
  }
  if (failed()) return;
  Take(CheckCoordinator(fleet_, &history_));
  Count();
}

void Schedule::Count() {
  result_.totals.updates_packed += fleet_.updates_packed();
  const auto clients = fleet_.store()->Clients();
  const auto last = fleet_.store()->LastRound();
  if (!clients.ok() || !last.ok() || !last->has_value()) return;
  for (const ClientRecord& client : *clients) {
    result_.totals.updates_applied += client.updates_applied;
    result_.totals.updates_not_applied += client.updates_not_applied;
    result_.totals.resets += client.resets;
  }
  const auto rounds = fleet_.store()->Rounds(1, (*last)->id);
  if (!rounds.ok()) return;
  for (const RoundRecord& round : *rounds) {
    result_.totals.rounds_committed += round.state == RoundState::kCommitted;
    result_.totals.rounds_aborted += round.state == RoundState::kAborted;
  }
}

}  // namespace terse
