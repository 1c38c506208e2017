// The daemon's part of trainers of the user's own (trainer/external_trainer.h): options, and what the log says.
#ifndef TERSE_CLIENT_RPC_TRAINER_SETUP_H_
#define TERSE_CLIENT_RPC_TRAINER_SETUP_H_

#include <atomic>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "client/rpc/connection_loop.h"
#include "core/trainer.h"

namespace terse {

// For a daemon with options.trainer: the factory whose trainers stop when `stop` becomes true. FAILED_PRECONDITION when
// the socket of --trainer-socket cannot be had.
absl::StatusOr<TrainerFactory> SetUpTrainer(const DaemonOptions& options, const std::atomic<bool>* stop);

// Waits until no process holds the state directory, at most kEarlierClientSeconds: the client of a program that was
// killed ends a moment after it, when the program may be there again.
inline constexpr double kEarlierClientSeconds = 15;
void AwaitEarlierClient(const std::string& state_directory, const std::atomic<bool>& stop);

// Sets `stop` when the other end of a socket is closed: a daemon that a trainer's process started ends with it, also
// while it waits for the coordinator.
class TrainerWatch {
 public:
  TrainerWatch(int socket, std::atomic<bool>* stop);
  ~TrainerWatch();
  TrainerWatch(const TrainerWatch&) = delete;
  TrainerWatch& operator=(const TrainerWatch&) = delete;

 private:
  void Watch(int socket, std::atomic<bool>* stop) const;

  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_TRAINER_SETUP_H_
