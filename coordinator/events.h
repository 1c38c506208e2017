// The inputs of the coordinator engine.
#ifndef TERSE_COORDINATOR_EVENTS_H_
#define TERSE_COORDINATOR_EVENTS_H_

#include <cstdint>
#include <memory>
#include <variant>

#include "absl/status/statusor.h"
#include "coordinator/client_link.h"
#include "core/session_messages.h"
#include "core/trainer.h"

namespace terse {

// Names one connection for as long as the coordinator process lives.
using SessionId = uint64_t;

struct Connected {
  SessionId session = 0;
  std::shared_ptr<ClientLink> link;
};

// A message that passed Engine::Validate.
struct Received {
  SessionId session = 0;
  FromClient message;
};

struct Disconnected {
  SessionId session = 0;
};

// The background worker evaluated the model of `round`.
struct Evaluated {
  int64_t round = 0;
  absl::StatusOr<Evaluation> result;
};

// The background worker wrote (or failed to write) a checkpoint.
struct CheckpointWritten {
  int64_t version = 0;
  absl::Status status;
};

// Time passed: the loop sends it when Engine::NextDeadlineMicros is reached.
struct Tick {};

// An operator ends the run.
struct StopRequested {};

using Event = std::variant<Connected, Received, Disconnected, Evaluated, CheckpointWritten, Tick, StopRequested>;

}  // namespace terse

#endif  // TERSE_COORDINATOR_EVENTS_H_
