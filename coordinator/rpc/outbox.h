// The messages of one session that wait to be sent.
#ifndef TERSE_COORDINATOR_RPC_OUTBOX_H_
#define TERSE_COORDINATOR_RPC_OUTBOX_H_

#include <cstdint>
#include <deque>
#include <variant>

#include "core/session_messages.h"
#include "proto/session_wire.h"
#include "terse/v1/fleet.pb.h"

namespace terse {

// A downstream message costs a reference until its chunks leave, everything else its wire form. In order. Not
// thread-safe.
class Outbox {
 public:
  // `config` as for ToWire.
  void Add(const FromServer& message, const v1::RunConfig& config);
  // Adds what comes next to `batch`: messages of about `most` bytes in all, at least one. Returns whether there was
  // anything.
  bool TakeBatch(int64_t most, v1::ServerMessages* batch);
  void Clear();
  // That wait; of a downstream message its payload.
  int64_t bytes() const { return bytes_; }

 private:
  std::deque<std::variant<v1::ServerMessage, DownstreamChunks>> waiting_;
  int64_t bytes_ = 0;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_OUTBOX_H_
