#include "trainer/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

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

// 0 where the failed call would have waited, or was interrupted, so that it may be made again.
absl::StatusOr<size_t> ZeroOrGone() {
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  return Gone();
}

// The part of a message that carries one file.
struct FileCarrier {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int))] = {};

  void Attach(msghdr* message) {
    message->msg_control = bytes;
    message->msg_controllen = sizeof bytes;
  }
};

}  // namespace

absl::Status Channel::Await(short events, const Patience& patience) const {
  if (patience != nullptr) TERSE_RETURN_IF_ERROR(patience());
  pollfd waited = {socket_.fd(), events, 0};
  if (poll(&waited, 1, patience != nullptr ? kAskEveryMillis : -1) < 0 && errno != EINTR) return Gone();
  return absl::OkStatus();
}

// A sandboxed process may not make these calls with a file, so that one without takes the plain ones.
absl::StatusOr<size_t> Channel::WriteSome(absl::string_view bytes, int file) {
  if (file < 0) {
    const ssize_t sent = send(socket_.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 ? ZeroOrGone() : static_cast<size_t>(sent);
  }
  iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  FileCarrier carrier;
  carrier.Attach(&message);
  cmsghdr* const control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(control), &file, sizeof file);
  const ssize_t sent = sendmsg(socket_.fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 ? ZeroOrGone() : static_cast<size_t>(sent);
}

absl::StatusOr<size_t> Channel::ReadSome(char* to, size_t size, OwnedFile* file) {
  if (files_ == Files::kRefused || file == nullptr) {
    const ssize_t got = recv(socket_.fd(), to, size, MSG_DONTWAIT);
    if (got == 0) return Gone();
    return got < 0 ? ZeroOrGone() : static_cast<size_t>(got);
  }
  iovec part = {to, size};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  FileCarrier carrier;
  carrier.Attach(&message);
  const ssize_t got = recvmsg(socket_.fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got == 0) return Gone();
  if (got < 0) return ZeroOrGone();
  const cmsghdr* const control = CMSG_FIRSTHDR(&message);
  if (control != nullptr && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(control), sizeof fd);
    *file = OwnedFile(fd);
  }
  return static_cast<size_t>(got);
}

absl::Status Channel::Write(absl::string_view bytes, const Patience& patience, int file) {
  while (!bytes.empty()) {
    TERSE_RETURN_IF_ERROR(Await(POLLOUT, patience));
    TERSE_ASSIGN_OR_RETURN(const size_t sent, WriteSome(bytes, file));
    if (sent > 0) file = -1;
    bytes.remove_prefix(sent);
  }
  return absl::OkStatus();
}

absl::Status Channel::Read(char* to, size_t size, const Patience& patience, OwnedFile* file) {
  while (size > 0) {
    TERSE_RETURN_IF_ERROR(Await(POLLIN, patience));
    TERSE_ASSIGN_OR_RETURN(const size_t got, ReadSome(to, size, file));
    to += got;
    size -= got;
  }
  return absl::OkStatus();
}

absl::Status Channel::Send(FrameKind kind, absl::string_view body, const Patience& patience, int file) {
  const Header header = {static_cast<uint32_t>(kind), 0, body.size()};
  TERSE_RETURN_IF_ERROR(Write({reinterpret_cast<const char*>(&header), sizeof header}, patience, file));
  return Write(body, patience, -1);
}

absl::StatusOr<Channel::Frame> Channel::Receive(uint64_t max_bytes, const Patience& patience) {
  Header header;
  Frame frame;
  TERSE_RETURN_IF_ERROR(Read(reinterpret_cast<char*>(&header), sizeof header, patience, &frame.file));
  if (header.zero != 0) return absl::InvalidArgumentError("bytes that are no frame");
  if (header.size > max_bytes) {
    return absl::OutOfRangeError(absl::StrCat("a message of ", header.size, " bytes, at most ", max_bytes));
  }
  frame.kind = static_cast<FrameKind>(header.kind);
  frame.body.resize(header.size);
  TERSE_RETURN_IF_ERROR(Read(&frame.body[0], frame.body.size(), patience, nullptr));
  return frame;
}

}  // namespace terse
