// Frames over one end of a Unix stream socket. A frame is a header of 16 bytes, little-endian (uint32 kind, uint32
// zero, uint64 size), and `size` bytes of body. A file may travel with a frame (SCM_RIGHTS, with the header's first
// byte).
#ifndef TERSE_TRAINER_CHANNEL_H_
#define TERSE_TRAINER_CHANNEL_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trainer/frames.h"
#include "trainer/owned_file.h"

namespace terse {

// The limit of Channel::Receive where the other end is trusted with messages of any size.
inline constexpr uint64_t kAnySize = UINT64_MAX;

// Not thread-safe. Both directions wait for the other end no longer than `patience` says: it is asked at least ten
// times a second, and a status of it that is not OK ends the call.
class Channel {
 public:
  using Patience = std::function<absl::Status()>;
  struct Frame {
    FrameKind kind;
    std::string body;
    OwnedFile file = {};
  };

  // `patience` without a function: for ever. An end that takes no files never has one put into it.
  enum class Files { kRefused, kTaken };
  explicit Channel(OwnedFile socket, Files files = Files::kRefused) : socket_(std::move(socket)), files_(files) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // `file` goes along, unless it is -1; it stays the caller's. ABORTED when the other end is gone.
  absl::Status Send(FrameKind kind, absl::string_view body, const Patience& patience, int file = -1);
  // ABORTED when the other end is gone, also in the middle of a frame; OUT_OF_RANGE, before memory is taken, for a body
  // above `max_bytes`; INVALID_ARGUMENT for a header that is none.
  absl::StatusOr<Frame> Receive(uint64_t max_bytes, const Patience& patience);

 private:
  // Sends a part of `bytes`, or receives some, and returns how many; 0 when the call may be made again.
  absl::StatusOr<size_t> WriteSome(absl::string_view bytes, int file);
  absl::StatusOr<size_t> ReadSome(char* to, size_t size, OwnedFile* file);
  absl::Status Write(absl::string_view bytes, const Patience& patience, int file);
  absl::Status Read(char* to, size_t size, const Patience& patience, OwnedFile* file);
  absl::Status Await(short events, const Patience& patience) const;

  const OwnedFile socket_;
  const Files files_;
};

}  // namespace terse

#endif  // TERSE_TRAINER_CHANNEL_H_
