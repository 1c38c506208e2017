// Real processes for end-to-end tests: a coordinator and its clients on loopback, started, killed and awaited.
#ifndef TERSE_TESTS_E2E_FLEET_PROCESSES_H_
#define TERSE_TESTS_E2E_FLEET_PROCESSES_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace terse {

// A child process whose output goes to a file. Killed when the object goes.
class Process {
 public:
  Process(std::vector<std::string> argv, std::string log_path);
  ~Process();

  // The exit code, -SIGNAL when a signal ended it, nullopt when it still runs after `timeout`.
  absl::optional<int> Wait(absl::Duration timeout);
  void Signal(int signal);
  // SIGKILL and wait: what a power switch does to a process.
  void Kill();
  // What it printed so far.
  std::string Output() const;

 private:
  const std::string log_path_;
  pid_t pid_ = -1;
  absl::optional<int> exit_code_;
};

// A fresh directory below the test's temporary one, removed with the object.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Where a coordinator serves, from its ready file.
struct Addresses {
  std::string listen;
  std::string admin;
};

// One fleet in one scratch directory: DIR/coordinator, DIR/client-N, logs beside them.
class FleetProcesses {
 public:
  // Paths of the two executables, and what both are told besides addresses and directories ("--data", DIR).
  FleetProcesses(std::string coordinator, std::string client, std::vector<std::string> extra = {});

  const ScratchDirectory& directory() const { return directory_; }
  std::string coordinator_state() const { return directory_ / "coordinator"; }
  std::string client_state(int index) const { return directory_ / ("client-" + std::to_string(index)); }

  // Starts the coordinator, on the ports that it had before when it had some, and waits until it serves. Fails the test
  // when it does not.
  void StartCoordinator(const std::string& run_file);
  void StartClient(int index);
  Process& coordinator() { return *coordinator_; }
  Process& client(int index) { return *clients_.at(index); }
  const Addresses& addresses() const { return addresses_; }

  // Waits until the coordinator's database has at least this many committed rounds.
  bool WaitForRounds(int64_t rounds, absl::Duration timeout) const;

 private:
  const std::string coordinator_path_;
  const std::string client_path_;
  const std::vector<std::string> extra_;
  ScratchDirectory directory_;
  Addresses addresses_;
  int starts_ = 0;
  std::unique_ptr<Process> coordinator_;
  std::vector<std::unique_ptr<Process>> clients_;
};

// Writes a file; fails the test when it cannot.
void WriteText(const std::string& path, const std::string& text);

// Runs a command to its end and returns what it printed on both streams; `exit_code` may be nullptr.
std::string RunCommand(const std::vector<std::string>& argv, int* exit_code);

// The one number that `sql` selects from the database, read only.
int64_t QueryNumber(const std::string& database, const std::string& sql);

}  // namespace terse

#endif  // TERSE_TESTS_E2E_FLEET_PROCESSES_H_
