// Real processes for end-to-end tests: a coordinator and its clients on loopback, started, killed and awaited.
#ifndef TERSE_TESTS_E2E_FLEET_PROCESSES_H_
#define TERSE_TESTS_E2E_FLEET_PROCESSES_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "tests/testing/wait_until.h"

namespace terse {

// Returns once every Process that is being started by any thread runs its own program. Until then it holds copies of
// all that this process has open, locks of directories included: who has let go of one and starts a process that will
// take it must wait.
void AwaitStartingProcesses();

// A child process whose output goes to a file. Killed when the object goes.
class Process {
 public:
  // With `own_group` it does not hear the signals that a terminal sends to the group of whoever starts it.
  Process(std::vector<std::string> argv, std::string log_path, bool own_group = false);
  ~Process();

  // The exit code, -SIGNAL when a signal ended it, nullopt when it still runs after `timeout`.
  absl::optional<int> Wait(absl::Duration timeout);
  void Signal(int signal);
  // SIGKILL and wait: what a power switch does to a process.
  void Kill();
  // Returns what the process has printed so far.
  std::string Output() const;
  pid_t pid() const { return pid_; }

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

// The addresses at which a coordinator serves, from its ready file.
struct Addresses {
  std::string listen;
  std::string admin;
  std::string http;  // URL of the dashboard; empty: there is none
};

// The place where a process runs, and the arguments that it gets beyond the usual ones.
struct Place {
  std::vector<std::string> launcher;  // in front of the command line: {"ip", "netns", "exec", NAME}
  std::string address;                // coordinator: where it listens; client: where it looks for the coordinator
  std::vector<std::string> extra;     // behind it
};

// One fleet in one scratch directory: DIR/coordinator, DIR/client-N, logs beside them.
class FleetProcesses {
 public:
  // Paths of the two executables, and what both are told besides addresses and directories ("--data", DIR).
  FleetProcesses(std::string coordinator, std::string client, std::vector<std::string> extra = {});

  const ScratchDirectory& directory() const { return directory_; }
  std::string coordinator_state() const { return directory_ / "coordinator"; }
  // Returns the directory in which the coordinator keeps the run of that name; without a name, its only run.
  std::string run_state(const std::string& run = "") const;
  // Returns the path of the run's database.
  std::string database(const std::string& run = "") const { return run_state(run) + "/run.sqlite"; }
  std::string client_state(int index) const { return directory_ / ("client-" + std::to_string(index)); }

  // Starts the coordinator, on the ports that it had before when it had some, and waits until it serves. Fails the test
  // when it does not. Without a run file it resumes what it has.
  void StartCoordinator(const std::string& run_file, const Place& place = {});
  void StartClient(int index, const Place& place = {});
  Process& coordinator() { return *coordinator_; }
  Process& client(int index) { return *clients_.at(index); }
  const Addresses& addresses() const { return addresses_; }

  // Waits until the run's database has at least this many committed rounds.
  bool WaitForRounds(int64_t rounds, absl::Duration timeout, const std::string& run = "") const;
  // Runs tersectl against the coordinator; what it printed on both streams.
  std::string Ctl(std::vector<std::string> arguments, int* exit_code = nullptr) const;

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
