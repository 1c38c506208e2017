#include "client/rpc/trainer_setup.h"

#include <poll.h>

#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/log_components.h"
#include "core/file_system.h"
#include "core/log/log.h"
#include "core/status.h"
#include "trainer/external_trainer.h"
#include "trainer/trainer_source.h"

namespace terse {
namespace {

constexpr int kWatchMillis = 200;

absl::StatusOr<TrainerSource> SourceOf(const TrainerOptions& options, const std::function<bool()>& stop,
                                       const std::function<void(const std::string& line)>& log) {
  if (!options.command.empty()) return TrainerCommand(options.command);
  if (options.inherited >= 0) return InheritedTrainer(options.inherited);
  return TrainerAtSocket(options.socket, stop, log);
}

}  // namespace

absl::StatusOr<TrainerFactory> SetUpTrainer(const DaemonOptions& options, const std::atomic<bool>* stop) {
  ExternalTrainerOptions trainer;
  trainer.seconds = options.trainer.seconds;
  trainer.stop = [stop] { return stop->load(); };
  trainer.log = [run = options.run, name = options.name](const std::string& line) {
    Log(LogLevel::kInfo, kDaemonLog, {run, 0, name}, line);
  };
  TERSE_ASSIGN_OR_RETURN(trainer.source, SourceOf(options.trainer, trainer.stop, trainer.log));
  return ExternalTrainerFactory(std::move(trainer));
}

void AwaitEarlierClient(const std::string& state_directory, const std::atomic<bool>& stop) {
  const absl::Time until = absl::Now() + absl::Seconds(kEarlierClientSeconds);
  while (!stop.load() && absl::Now() < until && IsLocked(state_directory).value_or(false)) {
    absl::SleepFor(absl::Milliseconds(20));
  }
}

TrainerWatch::TrainerWatch(int socket, std::atomic<bool>* stop)
    : thread_([this, socket, stop] { Watch(socket, stop); }) {}

TrainerWatch::~TrainerWatch() {
  done_.store(true);
  thread_.join();
}

void TrainerWatch::Watch(int socket, std::atomic<bool>* stop) const {
  while (!done_.load()) {
    pollfd watched = {socket, POLLRDHUP, 0};
    if (poll(&watched, 1, kWatchMillis) > 0 && (watched.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0) {
      stop->store(true);
      return;
    }
  }
}

}  // namespace terse
