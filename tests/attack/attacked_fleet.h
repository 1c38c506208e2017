// A fleet under attack: an authority, a real coordinator over TLS, honest clients as real processes, and hostile ones
// with certificates of the same authority in the test itself.
#ifndef TERSE_TESTS_ATTACK_ATTACKED_FLEET_H_
#define TERSE_TESTS_ATTACK_ATTACKED_FLEET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/attack/hostile_client.h"
#include "tests/e2e/fleet_processes.h"
#include "tests/security/secure_fleet.h"

namespace terse {

// How long an honest fleet may take for what it does in a second or two.
inline constexpr absl::Duration kAttackPatience = absl::Seconds(60);

class AttackedFleet {
 public:
  // Uses the grid trainer's small model, or with `wide` its wide one of 78,400 parameters. Other executables than the
  // grid trainer's come with a layout of their own.
  explicit AttackedFleet(bool wide = false);
  AttackedFleet(std::string coordinator, std::string client, const Layout& layout);

  // Serves the run of that TOML text. `extra` goes behind the coordinator's command line. Fails the test when the
  // coordinator does not start.
  void Serve(const std::string& run_toml, const std::vector<std::string>& extra = {});
  // The same again, with what its state directory holds.
  void ServeAgain(const std::vector<std::string>& extra = {}) { Serve("", extra); }
  // Starts honest clients client-FIRST to client-(FIRST + COUNT - 1).
  void StartHonest(int count, int first = 0);

  // A connection of a client with a certificate for `name`, which is made at its first use.
  std::unique_ptr<HostileClient> Hostile(const std::string& name);
  // The TLS folder of a name, likewise.
  std::string TlsFolder(Role role, const std::string& name);

  // Waits until `count` more rounds than now are committed.
  bool WaitForMoreRounds(int64_t count, absl::Duration timeout = kAttackPatience);
  int64_t CommittedRounds() const;
  // Occurrences of an event of the run; `client` is a name, or empty for all.
  int64_t CountEvents(const std::string& kind, const std::string& client = "") const;
  // Rows of the run's events, whatever their kinds.
  int64_t EventRows() const { return Query("SELECT count(*) FROM events"); }
  // The number that `sql` selects from the run's database.
  int64_t Query(const std::string& sql) const { return QueryNumber(processes_.database(), sql); }
  // tersectl as an operator.
  std::string Ctl(std::vector<std::string> arguments, int* exit_code = nullptr);

  // Whether the coordinator runs.
  bool IsServing() { return !processes_.coordinator().Wait(absl::ZeroDuration()).has_value(); }
  // Returns the bytes that the coordinator holds in memory now.
  int64_t ResidentBytes();
  // Returns the processor time that all its threads have used so far.
  absl::Duration ProcessorTime();

  FleetProcesses& processes() { return processes_; }
  SecureFleet& authority() { return authority_; }
  const Layout& layout() const { return layout_; }
  const std::string& address() const { return processes_.addresses().listen; }

 private:
  const Layout& layout_;
  const std::vector<std::string> launcher_;
  SecureFleet authority_;  // of which only the certificates are used
  FleetProcesses processes_;
  std::vector<std::pair<std::string, std::string>> folders_;  // of names
};

}  // namespace terse

#endif  // TERSE_TESTS_ATTACK_ATTACKED_FLEET_H_
