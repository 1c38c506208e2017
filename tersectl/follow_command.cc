// `tersectl follow`: the news of runs, for tools of the user's own.
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/file_system.h"
#include "core/status.h"
#include "tersectl/commands.h"
#include "tersectl/follow/follower.h"
#include "tersectl/follow/stop_signal.h"
#include "tersectl/follow/target_table.h"
#include "tersectl/restarts.h"

namespace terse {
namespace {

// Prints lines of several threads, each whole.
class SharedRemarks {
 public:
  explicit SharedRemarks(const Terminal& terminal) : terminal_(terminal) {}
  void Print(absl::string_view line) {
    absl::MutexLock lock(&mutex_);
    RemarksOf(terminal_)(line);
  }

 private:
  absl::Mutex mutex_;
  const Terminal& terminal_;
};

// The first error of a target.
class FirstError {
 public:
  void Set(const absl::Status& error) {
    absl::MutexLock lock(&mutex_);
    if (error_.ok()) error_ = error;
  }
  absl::Status Get() {
    absl::MutexLock lock(&mutex_);
    return error_;
  }

 private:
  absl::Mutex mutex_;
  absl::Status error_;
};

// Follows for one target, on a connection of its own, so that no target waits for another one.
absl::Status FollowFor(FollowTarget* target, bool is_first, const FollowRunsOptions& options, SharedRemarks* remarks,
                       StopSignal* stop) {
  FollowOptions follow;
  if (options.run.empty()) follow.patience_seconds = std::numeric_limits<double>::infinity();
  follow.patience_seconds = options.patience_seconds.value_or(follow.patience_seconds);
  TERSE_ASSIGN_OR_RETURN(AdminClient client,
                         AdminClient::Make(options.coordinator, absl::Seconds(options.timeout_seconds), options.run));
  const StopSignal::Cancels cancels(stop, &client);
  Follower follower(
      &client, options.run, target, [&](const std::string& line) { remarks->Print(line); }, stop->notification());
  // All targets find the same coordinator away.
  const auto remark = [&](absl::string_view line) {
    if (is_first) remarks->Print(line);
  };
  const auto call = [&](absl::FunctionRef<void()> heard) {
    return follower.Follow(absl::Seconds(follow.patience_seconds), heard);
  };
  return OutlastRestarts(client, follow, remark, call, stop->notification());
}

// Follows for all targets at once and returns the first error, which names the target where there are several.
absl::Status FollowForAll(const std::vector<std::unique_ptr<FollowTarget>>& targets, const FollowRunsOptions& options,
                          SharedRemarks* remarks, StopSignal* stop) {
  FirstError error;
  const auto follow = [&](size_t i) {
    const absl::Status ended = FollowFor(targets[i].get(), i == 0, options, remarks, stop);
    if (ended.ok() || stop->notification()->HasBeenNotified()) return;
    if (targets.size() == 1) return error.Set(ended);
    const absl::Status named(ended.code(), absl::StrCat(targets[i]->name(), ": ", ended.message()));
    remarks->Print(named.message());
    // A target that is away too long after the run's end ends alone: the others may be about to get their last news.
    if (absl::IsDeadlineExceeded(ended)) return error.Set(named);
    // Any other one ends all: somebody else, such as a service manager, may start the command again.
    error.Set(named);
    stop->Set();
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < targets.size(); ++i) threads.emplace_back(follow, i);
  for (std::thread& thread : threads) thread.join();
  return error.Get();
}

}  // namespace

absl::Status FollowRuns(AdminClient&, const FollowRunsOptions& options, const Terminal& terminal) {
  std::unique_ptr<DirectoryLock> lock;
  if (!options.state.empty()) {
    TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(options.state));
    TERSE_ASSIGN_OR_RETURN(lock, PosixFiles().Lock(options.state));
  }
  StopSignal stop;
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::unique_ptr<FollowTarget>> targets,
                         MakeFollowTargets(options, terminal, &stop));
  if (targets.empty()) {
    return absl::InvalidArgumentError(
        "there is nowhere to hand the news to; give --tensorboard, --mlflow, --otlp, --webhook, --checkpoints or "
        "--json");
  }
  SharedRemarks remarks(terminal);
  return FollowForAll(targets, options, &remarks, &stop);
}

}  // namespace terse
