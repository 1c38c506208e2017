// Where a client's trainer comes from: a program that it starts, or one that connects to it.
#ifndef TERSE_TRAINER_TRAINER_SOURCE_H_
#define TERSE_TRAINER_TRAINER_SOURCE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "trainer/child_process.h"
#include "trainer/owned_file.h"

namespace terse {

// The environment variable in which a trainer that was started finds the number of its end of the socket.
inline constexpr char kTrainerFdVariable[] = "TERSE_TRAINER_FD";

struct TrainerConnection {
  OwnedFile socket;
  std::unique_ptr<ChildProcess> process;  // null where the trainer is not this program's child
  // A memory file without a size that the process has already, since it can be given none; none is the usual case.
  OwnedFile memory = {};
};

// Connects to a trainer. Called again when the one before is lost, or works no more. UNAVAILABLE when trying again can
// help; CANCELLED when this process should stop.
using TrainerSource = std::function<absl::StatusOr<TrainerConnection>()>;

// Starts `command` with /bin/sh, in a process group of its own that dies with the thread that started it. Its standard
// output and error are this process's.
TrainerSource TrainerCommand(std::string command);

// Listens on a Unix socket at `path`, which only this user may open, and takes one trainer at a time. `stop` is asked
// ten times a second while nobody connects; `log` hears that it waits. FAILED_PRECONDITION when another process
// listens there, or the path cannot be had. The socket goes with the last copy of the source.
absl::StatusOr<TrainerSource> TrainerAtSocket(std::string path, std::function<bool()> stop,
                                              std::function<void(const std::string& line)> log);

// Takes the descriptor of a connected socket that this process was started with.
TrainerSource InheritedTrainer(int fd);

}  // namespace terse

#endif  // TERSE_TRAINER_TRAINER_SOURCE_H_
