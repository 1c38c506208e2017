// The coordinator engine's way to a connected client; coordinator/rpc implements it over gRPC, tests in memory.
#ifndef TERSE_COORDINATOR_CLIENT_LINK_H_
#define TERSE_COORDINATOR_CLIENT_LINK_H_

#include <cstdint>
#include <vector>

#include "core/session_messages.h"
#include "core/wire_meter.h"

namespace terse {

// Everything that the engine says to one client at a time.
struct ToClient {
  std::vector<FromServer> messages;
  // They may wait for the next Send whose messages may not, and then travel in the same packet.
  bool may_wait = false;
  // The engine hears Drained, once, when all that was queued up to here is with the transport, unless the link closed
  // before.
  bool tell_when_drained = false;
};

// Thread-safe. No call blocks.
class ClientLink {
 public:
  virtual ~ClientLink() = default;
  // Queues the messages; order is kept. A Refusal or Finished is the last one: the link then closes. Without effect on
  // a closed link (the engine hears Disconnected).
  virtual void Send(ToClient words) = 0;
  // The payload of messages that the connection has not taken yet.
  virtual int64_t WaitingBytes() = 0;
  // Cumulative bytes of the connection, from the coordinator's point of view.
  virtual WireBytes Wire() = 0;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_CLIENT_LINK_H_
