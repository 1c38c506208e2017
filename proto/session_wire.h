// The only code that turns the session's wire messages (terse/v1/fleet.proto) into core types and back. Large payloads
// are cut into chunks here and put together again, with their sizes checked against a limit before memory is taken.
#ifndef TERSE_PROTO_SESSION_WIRE_H_
#define TERSE_PROTO_SESSION_WIRE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "core/session_messages.h"
#include "terse/v1/fleet.pb.h"

namespace terse {

// Bytes of payload in one chunk; with its envelope a chunk message stays under 256 KiB.
inline constexpr int64_t kChunkBytes = 256 * 1024 - 256;
// gRPC's message limit on both ends.
inline constexpr int kMaxMessageBytes = 2 * 1024 * 1024;

// The chunks of a downstream message, each made when it is sent: what waits costs a reference to the message that all
// sessions share. Not thread-safe.
class DownstreamChunks {
 public:
  explicit DownstreamChunks(Downstream downstream) : downstream_(std::move(downstream)) {}
  // Bytes of payload that are still to come; 0 after the last chunk.
  int64_t left() const { return static_cast<int64_t>(downstream_.message->size()) - at_; }
  // The next chunk, of which there must be one: with all that is left, or `most` bytes of it, at least 1.
  v1::ServerMessage Next(int64_t most);

 private:
  const Downstream downstream_;
  int64_t at_ = 0;
};

// A model's layout, and back: INVALID_ARGUMENT for tensors that are no Layout.
google::protobuf::RepeatedPtrField<v1::Tensor> TensorsToWire(const Layout& layout);
absl::StatusOr<Layout> LayoutFromWire(const google::protobuf::RepeatedPtrField<v1::Tensor>& tensors);

// The messages that carry `message`: one, or one a chunk. `config` is what Welcome sends.
std::vector<v1::ServerMessage> ToWire(const FromServer& message, const v1::RunConfig& config);
std::vector<v1::ClientMessage> ToWire(const FromClient& message);

// A payload that arrives in chunks. A value type.
class Assembly {
 public:
  // INVALID_ARGUMENT when one is under way or `size` is 0 or above `limit`.
  absl::Status Begin(uint64_t size, int64_t limit, absl::string_view what);
  // INVALID_ARGUMENT when none is under way or more than the announced size arrives.
  absl::Status Append(absl::string_view data);
  bool complete() const { return active_ && data_.size() == size_; }
  std::string Take();

 private:
  bool active_ = false;
  uint64_t size_ = 0;
  std::string data_;
};

// Turns a client's wire messages into FromClient, one stream per object. Not thread-safe.
class ClientMessageReader {
 public:
  // `max_update_bytes` is Codec::MaxMessageBytes of the run.
  explicit ClientMessageReader(int64_t max_update_bytes) : max_update_bytes_(max_update_bytes) {}
  // Returns nullopt while a payload is incomplete. INVALID_ARGUMENT with the reason for a message that no client sends.
  absl::StatusOr<absl::optional<FromClient>> Feed(const v1::ClientMessage& message);

 private:
  absl::StatusOr<absl::optional<FromClient>> FeedUpdate(const v1::UpdateChunk& chunk);

  const int64_t max_update_bytes_;
  Update update_;
  Assembly assembly_;
};

// Turns the coordinator's wire messages into FromServer, one stream per object. Not thread-safe.
class ServerMessageReader {
 public:
  // The limit follows from the run once it is known; before the first downstream message it does not matter.
  void set_max_downstream_bytes(int64_t bytes) { max_downstream_bytes_ = bytes; }
  absl::StatusOr<absl::optional<FromServer>> Feed(const v1::ServerMessage& message);

 private:
  absl::StatusOr<absl::optional<FromServer>> FeedDownstream(const v1::DownstreamChunk& chunk);

  int64_t max_downstream_bytes_ = 0;
  Downstream downstream_;
  Assembly assembly_;
};

}  // namespace terse

#endif  // TERSE_PROTO_SESSION_WIRE_H_
