// The trainer's end of the protocol (docs/TRAINER.md), for trainers that are written in C++.
#ifndef TERSE_TRAINER_SERVE_TRAINER_H_
#define TERSE_TRAINER_SERVE_TRAINER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/trainer.h"
#include "trainer/owned_file.h"
#include "trainer/serve_peer.h"

namespace terse {

// Makes the trainer of a run.
using TrainerMaker = std::function<absl::StatusOr<std::unique_ptr<LocalTrainer>>(const RunOpening& opening)>;

// Serves the client at the other end of `socket` until it is gone. Its requests are believed. A trainer whose
// StartWeights are empty has none. `name` is told to the client. `memory`: as of ServePeer.
void ServeTrainer(OwnedFile socket, const std::string& name, const TrainerMaker& make_trainer, OwnedFile memory = {});

// The socket that a client gave this process (kTrainerFdVariable). FAILED_PRECONDITION when no client started it.
absl::StatusOr<OwnedFile> SocketOfClient();

}  // namespace terse

#endif  // TERSE_TRAINER_SERVE_TRAINER_H_
