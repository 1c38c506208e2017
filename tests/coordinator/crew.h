// A coordinator and scripted clients: for rules about who works when, one message at a time.
#ifndef TERSE_TESTS_COORDINATOR_CREW_H_
#define TERSE_TESTS_COORDINATOR_CREW_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testing/fleet_simulation.h"
#include "tests/testing/scripted_client.h"

namespace terse {

// Clients "c0", "c1", ..., which join in that order, so client i has index i.
class Crew {
 public:
  // With `relay`, the coordinator is a relay, whose run begins with that version.
  Crew(RunConfig config, int64_t size, const absl::optional<RelaySetup>& relay = absl::nullopt,
       int64_t first_version = 0)
      : fleet(std::move(config), 0) {
    if (relay.has_value()) fleet.set_relay(*relay, first_version);
    EXPECT_EQ(fleet.StartCoordinator(), absl::OkStatus());
    for (int64_t i = 0; i < size; ++i) Join(i);
  }

  // Connects client i (again), with a state that agrees with the coordinator's.
  void Join(int64_t i, int64_t samples = 1) {
    Connect(i);
    EXPECT_EQ(at(i).SayReady(samples), absl::OkStatus());
  }
  void Connect(int64_t i) {
    members_[i] = std::make_unique<ScriptedClient>(&fleet, absl::StrCat("c", i), next_session_++);
    EXPECT_EQ(at(i).SayCheckIn(LastApplied(i)), absl::OkStatus());
  }
  void Leave(int64_t i) {
    EXPECT_EQ(at(i).Disconnect(), absl::OkStatus());
    members_.erase(i);
  }
  // The coordinator's process ends and starts; nobody is connected.
  void Restart() {
    members_.clear();
    fleet.KillCoordinator();
    EXPECT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  }

  ScriptedClient& at(int64_t i) { return *members_.at(i); }
  Id128 LastApplied(int64_t i) {
    const absl::StatusOr<ClientRecord> record = fleet.store()->GetClient(i);
    return record.ok() ? record->last_applied : Id128{};
  }
  ClientRecord Record(int64_t i) { return *fleet.store()->GetClient(i); }

  // Returns the connected clients that were given work in the round.
  std::set<int64_t> Working(int64_t round) {
    std::set<int64_t> working;
    for (const auto& [i, member] : members_) {
      for (const Assignment& assignment : member->All<Assignment>()) {
        if (assignment.round == round) working.insert(i);
      }
    }
    return working;
  }
  Update MakeUpdate(int64_t i, int64_t round) { return at(i).MakeUpdate(round, i, round, LastApplied(i)); }
  void Deliver(int64_t i, int64_t round) { EXPECT_EQ(at(i).Say(MakeUpdate(i, round)), absl::OkStatus()); }
  // Everyone who has work in the open round delivers.
  void DeliverAll() {
    const int64_t round = view().round;
    for (int64_t i : Working(round)) {
      if (view().round == round) Deliver(i, round);
    }
  }

  EngineView view() { return fleet.engine()->View(); }
  std::string StateOf(int64_t i) {
    for (const SessionView& session : view().sessions) {
      if (session.client == i) return session.state;
    }
    return "away";
  }
  RoundState RoundStateOf(int64_t round) { return **fleet.store()->GetRoundState(round); }
  double SecondsToDeadline() {
    return static_cast<double>(fleet.engine()->NextDeadlineMicros() - fleet.clock()->MonotonicMicros()) * 1e-6;
  }
  // Time passes and the timer is asked.
  void Pass(double seconds) {
    fleet.clock()->Advance(seconds);
    EXPECT_EQ(fleet.Handle(Tick{}), absl::OkStatus());
  }

  FleetSimulation fleet;

 private:
  std::map<int64_t, std::unique_ptr<ScriptedClient>> members_;
  SessionId next_session_ = 1001;
};

}  // namespace terse

#endif  // TERSE_TESTS_COORDINATOR_CREW_H_
