// A fleet of real processes that die: a coordinator, its relays where it has some, and the clients, on an address of
// loopback's own. They are started with or without a failpoint at which they are killed, killed at once, and watched.
#ifndef TERSE_TESTS_FAULTS_FLEET_H_
#define TERSE_TESTS_FAULTS_FLEET_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "tests/e2e/fleet_processes.h"
#include "tests/faults/failpoint_plan.h"
#include "tests/faults/fleet_settings.h"

namespace terse {

// Deaths by SIGKILL: by failpoint, or under kRandomly.
using KillCounts = std::map<std::string, int64_t>;
inline constexpr char kRandomly[] = "at random";

// An address of loopback that no other process of this kind uses: `slot` is in 0..253.
std::string UniqueAddress(int slot);

// Member 0 is the coordinator, then come the relays, relay by relay, and then the clients, those of one relay in a row.
// Not thread-safe.
class FaultyFleet {
 public:
  struct Options {
    std::string bin;        // directory of grid-coordinator, grid-relay and grid-client
    std::string mutant;     // TERSE_MUTANT of the processes; empty: none
    std::string directory;  // exists; state and logs go below it
    std::string address;    // of loopback, 127.x.y.z, that no other fleet has
  };

  FaultyFleet(Options options, FleetSettings settings);

  const FleetSettings& settings() const { return settings_; }
  int members() const { return 1 + settings_.relays + settings_.clients; }
  int first_client() const { return 1 + settings_.relays; }
  Side SideOf(int member) const {
    return member == 0 ? Side::kCoordinator : member < first_client() ? Side::kRelay : Side::kClient;
  }
  std::vector<int> MembersOf(Side side) const;
  std::string NameOf(int member) const;
  // The number that makes a client's deltas its own, from 0.
  int64_t GridClientOf(int member) const { return member - first_client(); }
  // Returns the member to which a relay or a client connects first.
  int ServerOf(int member) const;
  std::string StateOf(int member) const;
  // Returns the directory of what a client, or a relay as one, keeps of its training.
  std::string ClientStateOf(int member) const;
  // Returns the directory in which the coordinator, or a relay, keeps the run that it serves.
  std::string RunOf(int member) const;

  // Starts a dead member. With `armed`, it will die at the `pass`-th time that it comes by there.
  void Start(int member, const FailpointPlan* armed = nullptr, int pass = 1);
  // SIGKILL, unless the member is dead. INTERNAL when it had ended by itself.
  absl::Status Kill(int member);
  void Signal(int member, int signal);
  // SIGTERM to all, from the clients up, and their orderly end. INTERNAL with the log's last lines when one does not
  // end so.
  absl::Status StopInOrder();

  bool alive(int member) const { return processes_[member] != nullptr; }
  bool armed(int member) const { return armed_[member] != nullptr; }
  absl::Time started(int member) const { return started_[member]; }
  // Takes note of who has died at a failpoint. INTERNAL with the log's last lines when a process ended in another way.
  absl::Status Poll();

  // Whether the coordinator, or a relay, serves since its last start.
  bool Ready(int member = 0) const;
  // Whether a client has a session with the process that it connects to first, as that has noted it.
  bool IsAtHome(int client) const;
  // Returns the model's version, from the coordinator's database.
  int64_t Version() const;
  // Time from the member's last start to the first commit after it: the coordinator's of any round, a relay's or a
  // client's of an update of its own after it has checked in, wherever it did. nullopt as long as there is none. A dead
  // or not yet serving process is not asked: whoever opens its database first repairs it, and that is its own affair.
  absl::optional<absl::Duration> Recovered(int member) const;

  const KillCounts& kills(Side side) const { return kills_.at(side); }
  int64_t total_kills() const { return total_kills_; }

 private:
  std::vector<std::string> CommandLine(int member) const;
  // Where the coordinator, or a relay, serves, and a client or a relay looks for one.
  std::string AddressOf(int server) const;
  std::string AddressesFor(int member) const;
  // Those with which the member may have checked in.
  std::vector<int> ServersOf(int member) const;
  std::string ReadyFile(int member) const;
  std::string LogOf(int member) const;
  std::string DatabaseOf(int member) const;
  std::string LastLines(int member) const;
  absl::Status AwaitEnd(int member);
  // Notes how a member ended: a kill, or the error that it is not one.
  absl::Status Bury(int member, int code, absl::string_view where);

  const Options options_;
  const FleetSettings settings_;
  const std::string run_file_;
  std::vector<std::unique_ptr<Process>> processes_;  // nullptr: dead
  std::vector<const FailpointPlan*> armed_;          // nullptr: not
  std::vector<absl::Time> started_;
  std::vector<int> starts_;
  std::map<Side, KillCounts> kills_ = {{Side::kCoordinator, {}}, {Side::kRelay, {}}, {Side::kClient, {}}};
  int64_t total_kills_ = 0;
};

}  // namespace terse

#endif  // TERSE_TESTS_FAULTS_FLEET_H_
