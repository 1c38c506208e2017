#include "sandbox/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr int kAskEveryMillis = 100;

struct Header {
  uint32_t kind;
  uint32_t zero;
  uint64_t size;
};

absl::Status Gone() { return absl::AbortedError("the other end is gone"); }

// Whether the failed call would have waited, or was interrupted, so that it may be made again.
bool MayTryAgain() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Channel::~Channel() { close(fd_); }

absl::Status Channel::Await(short events, const Patience& patience) const {
  if (patience != nullptr) TERSE_RETURN_IF_ERROR(patience());
  pollfd waited = {fd_, events, 0};
  if (poll(&waited, 1, patience != nullptr ? kAskEveryMillis : -1) < 0 && errno != EINTR) return Gone();
  return absl::OkStatus();
}

absl::Status Channel::Write(absl::string_view bytes, const Patience& patience) {
  while (!bytes.empty()) {
    TERSE_RETURN_IF_ERROR(Await(POLLOUT, patience));
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && !MayTryAgain()) return Gone();
    if (sent > 0) bytes.remove_prefix(sent);
  }
  return absl::OkStatus();
}

absl::Status Channel::Read(char* to, size_t size, const Patience& patience) {
  while (size > 0) {
    TERSE_RETURN_IF_ERROR(Await(POLLIN, patience));
    const ssize_t got = recv(fd_, to, size, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && !MayTryAgain())) return Gone();
    if (got > 0) {
      to += got;
      size -= got;
    }
  }
  return absl::OkStatus();
}

absl::Status Channel::Send(FrameKind kind, absl::string_view body, const Patience& patience) {
  const Header header = {static_cast<uint32_t>(kind), 0, body.size()};
  TERSE_RETURN_IF_ERROR(Write({reinterpret_cast<const char*>(&header), sizeof header}, patience));
  return Write(body, patience);
}

absl::StatusOr<Channel::Frame> Channel::Receive(uint64_t max_bytes, const Patience& patience) {
  Header header;
  TERSE_RETURN_IF_ERROR(Read(reinterpret_cast<char*>(&header), sizeof header, patience));
  if (header.size > max_bytes) {
    return absl::OutOfRangeError(absl::StrCat("a message of ", header.size, " bytes, at most ", max_bytes));
  }
  Frame frame = {static_cast<FrameKind>(header.kind), std::string(header.size, '\0')};
  TERSE_RETURN_IF_ERROR(Read(&frame.body[0], frame.body.size(), patience));
  return frame;
}

}  // namespace terse
