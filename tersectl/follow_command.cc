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

// Follows for one target, on a connection of its own, so that no target waits for another one.
absl::Status FollowFor(FollowTarget* target, bool is_first, const FollowRunsOptions& options, SharedRemarks* remarks) {
  FollowOptions follow;
  if (options.run.empty()) follow.patience_seconds = std::numeric_limits<double>::infinity();
  follow.patience_seconds = options.patience_seconds.value_or(follow.patience_seconds);
  TERSE_ASSIGN_OR_RETURN(AdminClient client,
                         AdminClient::Make(options.coordinator, absl::Seconds(options.timeout_seconds), options.run));
  Follower follower(&client, options.run, target, [&](const std::string& line) { remarks->Print(line); });
  // All targets find the same coordinator away.
  const auto remark = [&](absl::string_view line) {
    if (is_first) remarks->Print(line);
  };
  return OutlastRestarts(client, follow, remark, [&](absl::FunctionRef<void()> heard) {
    return follower.Follow(absl::Seconds(follow.patience_seconds), heard);
  });
}

}  // namespace

absl::Status FollowRuns(AdminClient&, const FollowRunsOptions& options, const Terminal& terminal) {
  std::unique_ptr<DirectoryLock> lock;
  if (!options.state.empty()) {
    TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(options.state));
    TERSE_ASSIGN_OR_RETURN(lock, PosixFiles().Lock(options.state));
  }
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::unique_ptr<FollowTarget>> targets,
                         MakeFollowTargets(options, terminal));
  if (targets.empty()) {
    return absl::InvalidArgumentError(
        "there is nowhere to hand the news to; give --tensorboard, --mlflow, --otlp, --webhook or --json");
  }
  SharedRemarks remarks(terminal);
  std::vector<absl::Status> ended(targets.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < targets.size(); ++i) {
    threads.emplace_back([&, i] { ended[i] = FollowFor(targets[i].get(), i == 0, options, &remarks); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : ended) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace terse
