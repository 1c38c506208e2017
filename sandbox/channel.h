// Frames over one end of a socket pair. Internal to sandbox.
#ifndef TERSE_SANDBOX_CHANNEL_H_
#define TERSE_SANDBOX_CHANNEL_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sandbox/messages.h"

namespace terse {

// Not thread-safe. Both directions wait for the other end no longer than `patience` says: it is asked at least ten
// times a second, and a status of it that is not OK ends the call.
class Channel {
 public:
  using Patience = std::function<absl::Status()>;
  struct Frame {
    FrameKind kind;
    std::string body;
  };

  // Takes the descriptor of a stream socket. `patience` without a function: for ever.
  explicit Channel(int fd) : fd_(fd) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // ABORTED when the other end is gone.
  absl::Status Send(FrameKind kind, absl::string_view body, const Patience& patience);
  // ABORTED when the other end is gone, also in the middle of a frame; OUT_OF_RANGE, before memory is taken, for a body
  // above `max_bytes`.
  absl::StatusOr<Frame> Receive(uint64_t max_bytes, const Patience& patience);

 private:
  absl::Status Write(absl::string_view bytes, const Patience& patience);
  absl::Status Read(char* to, size_t size, const Patience& patience);
  absl::Status Await(short events, const Patience& patience) const;

  const int fd_;
};

}  // namespace terse

#endif  // TERSE_SANDBOX_CHANNEL_H_
