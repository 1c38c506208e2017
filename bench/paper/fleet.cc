#include "bench/paper/fleet.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "bench/stop_request.h"
#include "coordinator/rpc/coordinator_thread.h"
#include "coordinator/torch_learning.h"
#include "core/file_system.h"
#include "core/log/log.h"
#include "core/status.h"
#include "learning/runtime.h"
#include "tersectl/admin_client.h"

extern char** environ;

namespace terse {
namespace {

// A process with virtual clients, which is told to stop when the object goes.
class Worker {
 public:
  Worker(std::vector<std::string> arguments, std::string log) : log_(std::move(log)) {
    std::vector<char*> raw;
    for (std::string& argument : arguments) raw.push_back(argument.data());
    raw.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    spawn_error_ = posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, raw.data(), environ);
    if (spawn_error_ != 0) pid_ = 0;
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Worker() {
    if (pid_ == 0) return;
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // UNAVAILABLE when it has failed; what its errno stands for when it could not start.
  absl::Status Check() {
    if (pid_ == 0) return Failed();
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return absl::OkStatus();
    pid_ = 0;
    finished_ = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return Failed();
  }

 private:
  absl::Status Failed() const {
    if (finished_) return absl::OkStatus();
    if (spawn_error_ != 0) {
      return absl::ErrnoToStatus(spawn_error_, absl::StrCat("starting a process with clients, whose log is ", log_));
    }
    return absl::UnavailableError(absl::StrCat("a process with clients ended; its last words are in ", log_));
  }

  const std::string log_;
  int spawn_error_ = 0;  // an errno
  pid_t pid_ = 0;
  bool finished_ = false;
};

std::vector<std::unique_ptr<Worker>> StartWorkers(const FleetOptions& options, const std::string& address) {
  std::vector<std::unique_ptr<Worker>> workers;
  int64_t first = 0;
  for (int64_t i = 0; i < options.workers; ++i) {
    const int64_t count = (options.clients - first) / (options.workers - i);
    if (count == 0) continue;
    std::vector<std::string> arguments = {"terse-bench",   "virtual-clients",
                                          "--coordinator", address,
                                          "--state",       absl::StrCat(options.directory, "/clients"),
                                          "--device",      options.device,
                                          "--first",       absl::StrCat(first),
                                          "--count",       absl::StrCat(count)};
    arguments.insert(arguments.end(), {"--link", absl::StrCat(options.link_bytes_per_second)});
    if (!options.data.empty()) arguments.insert(arguments.end(), {"--data", options.data});
    workers.push_back(
        std::make_unique<Worker>(std::move(arguments), absl::StrCat(options.directory, "/worker-", i, ".log")));
    first += count;
  }
  return workers;
}

// Passes SIGINT and SIGTERM on to `on_stop` while it lives.
class StopWatch {
 public:
  explicit StopWatch(std::function<absl::Status()> look, std::function<void()> on_stop) {
    StopOnSignals();
    thread_ = std::thread([this, look = std::move(look), on_stop = std::move(on_stop)] {
      while (!done_.WaitForNotificationWithTimeout(absl::Milliseconds(200))) {
        trouble_ = look();
        if (trouble_.ok() && !StopRequested().load()) continue;
        on_stop();
        return;
      }
    });
  }
  // Ends the watch; returns what `look` found.
  absl::Status Finish() {
    if (!done_.HasBeenNotified()) done_.Notify();
    if (thread_.joinable()) thread_.join();
    return trouble_;
  }
  ~StopWatch() { Finish().IgnoreError(); }

 private:
  absl::Notification done_;
  absl::Status trouble_;
  std::thread thread_;
};

absl::StatusOr<FleetResult> ReadResult(AdminClient* client) {
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, client->GetStatus());
  TERSE_ASSIGN_OR_RETURN(std::vector<v1::Round> rounds, client->ListRounds(0, 0));
  return FleetResult{Summarize(status, rounds), std::move(rounds)};
}

absl::StatusOr<FleetResult> WatchRun(AdminClient* client,
                                     const std::function<void(const v1::Round& round, bool earlier)>& on_round) {
  TERSE_ASSIGN_OR_RETURN(const v1::Status start, client->GetStatus());
  uint64_t newest = 0;
  TERSE_RETURN_IF_ERROR(client->Watch(1, [&](const v1::Round& round) {
    // A round is told again once it is evaluated, and an aborted one is none of the run's.
    if (round.id() <= newest || round.state() != "committed") return;
    newest = round.id();
    on_round(round, newest <= start.version());
  }));
  return ReadResult(client);
}

}  // namespace

absl::StatusOr<FleetResult> RunFleet(const FleetOptions& options,
                                     const std::function<void(const v1::Round& round, bool earlier)>& on_round) {
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(options.directory));
  ConfigureLog({LogFormat::kHuman, {LogLevel::kError}});
  std::signal(SIGPIPE, SIG_IGN);
  ConfigureThreads(1);
  ConfigureMalloc();
  CoordinatorOptions serving;
  serving.run_files = {options.run_file};
  serving.state_directory = absl::StrCat(options.directory, "/coordinator");
  serving.data_directory = options.data;
  serving.listen = "127.0.0.1:0";
  serving.admin = "127.0.0.1:0";
  CoordinatorThread coordinator(serving, TorchRunLearning());
  if (coordinator.addresses().fleet.empty()) return coordinator.Stop();
  std::vector<std::unique_ptr<Worker>> workers = StartWorkers(options, coordinator.addresses().fleet);
  TERSE_ASSIGN_OR_RETURN(AdminClient admin, AdminClient::Make({coordinator.addresses().admin, {}}, absl::Seconds(60)));
  StopWatch watch(
      [&workers]() -> absl::Status {
        for (const std::unique_ptr<Worker>& worker : workers) TERSE_RETURN_IF_ERROR(worker->Check());
        return absl::OkStatus();
      },
      // The workers go first: their clients leave whole states.
      [&workers, &coordinator] {
        workers.clear();
        coordinator.Stop().IgnoreError();
      });
  absl::StatusOr<FleetResult> result = WatchRun(&admin, on_round);
  TERSE_RETURN_IF_ERROR(watch.Finish());
  if (StopRequested().load()) {
    return absl::CancelledError(absl::StrCat("stopped; the same command goes on from ", options.directory));
  }
  workers.clear();
  TERSE_RETURN_IF_ERROR(coordinator.Stop());
  return result;
}

}  // namespace terse
