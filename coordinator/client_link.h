// The coordinator engine's way to a connected client; coordinator/rpc implements it over gRPC, tests in memory.
#ifndef TERSE_COORDINATOR_CLIENT_LINK_H_
#define TERSE_COORDINATOR_CLIENT_LINK_H_

#include <utility>

#include "core/session_messages.h"
#include "core/wire_meter.h"

namespace terse {

// Thread-safe. No call blocks.
class ClientLink {
 public:
  virtual ~ClientLink() = default;
  // Queues a message; order is kept. A Refusal or Finished is the last one: the link then closes. Without effect on a
  // closed link (the engine hears Disconnected).
  virtual void Send(FromServer message) = 0;
  // Queues a message that may wait for the next Send or Flush, and then travels in the same packet.
  virtual void SendLater(FromServer message) { Send(std::move(message)); }
  virtual void Flush() {}
  // Lets the engine hear Drained, once, when the messages queued so far are with the transport, unless the link closed
  // before.
  virtual void TellWhenDrained() = 0;
  // Cumulative bytes of the connection, from the coordinator's point of view.
  virtual WireBytes Wire() = 0;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_CLIENT_LINK_H_
