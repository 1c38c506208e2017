// The coordinator process: options, state directory, runs, the two gRPC servers, the dashboard, health, signals.
#ifndef TERSE_COORDINATOR_RPC_SERVER_H_
#define TERSE_COORDINATOR_RPC_SERVER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "coordinator/rpc/client_budgets.h"
#include "coordinator/rpc/run_learning.h"
#include "core/log/log.h"
#include "proto/keepalive.h"
#include "security/transport_options.h"

namespace terse {

// The operators' Unix socket, in the state directory, where --admin is not given.
inline constexpr char kAdminSocket[] = "admin.sock";

// Users' models, which are TorchScript and run in a process of their own (docs/SECURITY.md).
struct ModelOptions {
  std::string allow = "socket";  // whose are taken, as ModelPolicy::Parse
  int64_t memory_mb = 4096;      // that such a process may take beyond the program itself, in units of 2^20 bytes
  double seconds = 300;          // that checking one, an evaluation or an export may last
};

// An evaluator of the operator's own; at most one of the first two is given.
struct EvaluatorOptions {
  std::string command;
  std::string socket;
  double seconds = 600;  // that one evaluation may take
};

class RelayHalf;

struct CoordinatorOptions {
  std::vector<std::string> run_files;  // TOML; none: every run that the state directory holds
  bool check = false;                  // say whether they can be served (run_check.h), and end
  std::string state_directory;
  std::string store;         // address of the PostgreSQL database that keeps the runs; empty: the state directory does
  double lease_seconds = 3;  // that the one that serves the store may be silent
  std::string data_directory;  // for evaluation; empty: the embedded data set
  std::string listen = "127.0.0.1:7700";
  std::string admin;  // empty: the Unix socket kAdminSocket in the state directory
  std::string http;   // address of the dashboard; empty: none
  TransportOptions transport;
  int64_t max_connections = 0;              // of clients at a time; 0: as many as the process may open files for
  int64_t max_connections_per_address = 0;  // 0: half of those
  BudgetOptions budgets;                    // of each client with a certificate
  double unread_timeout_seconds = 120;      // how long a client may leave what it is sent unread
  std::string audit_file;                   // where to append the audit log as lines of JSON; empty: nowhere
  std::string ready_file;  // JSON with the two addresses and the dashboard's URL, written once all are served
  LogSettings log;
  double keepalive_seconds = kDefaultKeepaliveSeconds;
  int64_t trace_rounds = 0;  // newest rounds of each run whose traces are kept
  ModelOptions models;
  EvaluatorOptions evaluator;
  std::vector<std::string> command_line;  // of this process, which starts itself again as a model's sandbox
  std::string sandboxed;                  // not empty in such a process: whether its network namespace is its own
  RelayHalf* relay = nullptr;             // null: a coordinator
};

// Parses argv. Returns an exit code when the process should end at once (--help, a usage error), else -1. A process
// that is a model's sandbox is confined when this returns, so a main calls it before it starts a thread.
int ParseCoordinatorOptions(int argc, char** argv, CoordinatorOptions* options);

// The end of a coordinator, which the first of several causes decides. Thread-safe.
class CoordinatorEnding {
 public:
  // Ends the coordinator with this status, unless that was decided before.
  void Decide(const absl::Status& status);
  // Waits until it is decided, and returns the status.
  absl::Status Wait();
  // Waits until it is decided, or for so long. Returns whether it is.
  bool WaitFor(absl::Duration wait) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(this, &CoordinatorEnding::IsDecided), wait);
  }
  bool decided() {
    absl::ReaderMutexLock lock(&mutex_);
    return IsDecided();
  }

 private:
  bool IsDecided() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return status_.has_value(); }

  absl::Mutex mutex_;
  absl::optional<absl::Status> status_ ABSL_GUARDED_BY(mutex_);
};

struct CoordinatorAddresses {
  std::string fleet;  // with the ports that were chosen
  std::string admin;
  std::string http;  // URL of the dashboard; empty: none
};
using CoordinatorReady = std::function<void(const CoordinatorAddresses&)>;

// Serves in the calling thread until an operator shuts the coordinator down, `ending` is decided from outside, or no
// run can go on: the status of that. `on_ready` is called once all addresses are served. A sync that failed ends the
// process at once, with exit code 1.
//
// The health service (grpc.health.v1) on the clients' address says SERVING for "terse.v1.Fleet/NAME" while that run is
// served, and for "" and "terse.v1.Fleet" while all are.
absl::Status ServeRuns(const CoordinatorOptions& options, const RunLearningFactory& make_learning,
                       CoordinatorEnding* ending, const CoordinatorReady& on_ready = nullptr);

// In a process that is a model's sandbox: serves the coordinator that started it. With `options.check`: CheckRuns on
// standard output, and 0 when every run can be served. Otherwise:
//
// Serves until an operator shuts the process down, SIGINT, SIGTERM or no run can go on. Returns the exit code: 0 in
// order, 1 on a failure, which is on stderr in one line.
// `prepare`, which may be empty, is called before the runs are opened.
int RunCoordinator(const CoordinatorOptions& options, const RunLearningFactory& make_learning,
                   const std::function<absl::Status()>& prepare = nullptr);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_SERVER_H_
