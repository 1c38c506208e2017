// The inputs of the coordinator engine.
#ifndef TERSE_COORDINATOR_EVENTS_H_
#define TERSE_COORDINATOR_EVENTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "coordinator/client_link.h"
#include "coordinator/upstream.h"
#include "core/session_messages.h"
#include "core/trainer.h"

namespace terse {

// Names one connection for as long as the coordinator process lives.
using SessionId = uint64_t;

struct Connected {
  SessionId session = 0;
  std::shared_ptr<ClientLink> link;
};

// A message that passed TakeMessage. An update that was not due, or whose history the coordinator lacks, was not
// decoded.
struct Received {
  SessionId session = 0;
  FromClient message;
};

struct Disconnected {
  SessionId session = 0;
};

// All messages that the session's link was given have left. ToClient::tell_when_drained asks for this event.
struct Drained {
  SessionId session = 0;
};

// The session sent a message that TakeMessage refuses, or bytes that are no message; the gRPC edge has refused it.
struct Misbehaved {
  SessionId session = 0;
  std::string reason;  // one line for people
};

// A received update could not be put away, with RESOURCE_EXHAUSTED or UNAVAILABLE: the run is suspended, as after any
// other trouble with its disk.
struct SpoolFailed {
  absl::Status status;
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

// No new round opens until ResumeRequested; the open one goes on to its end.
struct PauseRequested {
  std::string reason;
};
struct ResumeRequested {};

// The open round is given up and its updates fold forward; the run goes on.
struct AbortRequested {
  std::string reason;
};

// Sets a client aside until `until_us`, or readmits it (0).
struct SetAsideRequested {
  int64_t client = 0;
  int64_t until_us = 0;
  std::string reason;
};

// The following events come to a relay's engine from above, in the order of what was said there.

// A round is to be made from the head, which is the order's base version.
struct RoundOrdered {
  RoundOrder order;
};

// Nobody waits for the ordered round any more: what is open of it is given up.
struct OrderWithdrawn {
  std::string reason;  // one line for people
};

// Answers Upstream::HandUp. OK: the result is sealed, durably, in the relay's own update. Otherwise it never will be.
struct HandedUp {
  int64_t round = 0;
  absl::Status sealed;
};

// The model has moved.
struct ModelMoved {
  Downstream message;
};

// The coordinator above says that the run is over.
struct RunEndedAbove {
  std::string reason;
};

using Event = std::variant<Connected, Received, Disconnected, Drained, Misbehaved, SpoolFailed, Evaluated,
                           CheckpointWritten, Tick, StopRequested, PauseRequested, ResumeRequested, AbortRequested,
                           SetAsideRequested, RoundOrdered, OrderWithdrawn, HandedUp, ModelMoved, RunEndedAbove>;

}  // namespace terse

#endif  // TERSE_COORDINATOR_EVENTS_H_
