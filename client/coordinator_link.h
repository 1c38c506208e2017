// The client engine's way to the coordinator; client/rpc implements it over gRPC, tests in memory.
#ifndef TERSE_CLIENT_COORDINATOR_LINK_H_
#define TERSE_CLIENT_COORDINATOR_LINK_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/session_messages.h"

namespace terse {

// The client's half of one connection: all but the messages that come, for a client that is handed them. Used from one
// thread. A call that waits ends with CANCELLED once the process was asked to stop.
class OutboundLink {
 public:
  virtual ~OutboundLink() = default;

  // UNAVAILABLE when the connection is gone; whether the message arrived is then unknown.
  virtual absl::Status Send(const FromClient& message) = 0;
  // Sets the most bytes that a downstream message may have. Called once the run is known.
  virtual void SetMaxDownstreamBytes(int64_t bytes) = 0;

  // The bytes of the checkpoint file of `version`, at most `max_bytes`. Goes on after a broken transfer where it
  // stopped; UNAVAILABLE when that does not help. NOT_FOUND when the coordinator has replaced that checkpoint.
  virtual absl::StatusOr<std::string> DownloadCheckpoint(Id128 lineage, int64_t version, int64_t max_bytes) = 0;
  // Returns the bytes of the run's TorchScript file, in the same way.
  virtual absl::StatusOr<std::string> DownloadModule(Id128 lineage, int64_t max_bytes) = 0;
};

// One connection, likewise.
class CoordinatorLink : public OutboundLink {
 public:
  // Waits for the next message. UNAVAILABLE when the connection is gone.
  virtual absl::StatusOr<FromServer> Receive() = 0;
};

}  // namespace terse

#endif  // TERSE_CLIENT_COORDINATOR_LINK_H_
