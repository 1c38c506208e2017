#include "core/wire_meter.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/optional.h"

namespace terse {
namespace {

// The peer of a connected TCP socket in gRPC's spelling; a mapped IPv4 address is printed as IPv4, as gRPC does.
std::string PeerOf(int fd) {
  sockaddr_storage storage;
  socklen_t length = sizeof storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return "";
  char text[INET6_ADDRSTRLEN];
  if (storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    return absl::StrCat("ipv4:", text, ":", ntohs(v4->sin_port));
  }
  if (storage.ss_family != AF_INET6) return "";
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
  if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
    inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, text, sizeof text);
    return absl::StrCat("ipv4:", text, ":", ntohs(v6->sin6_port));
  }
  inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
  return absl::StrCat("ipv6:[", text, "]:", ntohs(v6->sin6_port));
}

// The kernel's numbers (include/net/tcp_states.h); the C library's header that names them clashes with its tcp_info.
constexpr int kTimeWait = 6, kClosed = 7, kCloseWait = 8, kLastAck = 9, kClosing = 11;

// Whether the peer's FIN has arrived: the kernel counts its sequence number among the received bytes.
bool HasFin(const tcp_info& info) {
  const int state = info.tcpi_state;
  return state == kTimeWait || state == kCloseWait || state == kLastAck || state == kClosing;
}

}  // namespace

absl::optional<WireSocket> SocketOf(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISSOCK(info.st_mode)) return absl::nullopt;
  return WireSocket{fd, info.st_ino};
}

bool IsOpen(const WireSocket& socket) {
  const absl::optional<WireSocket> now = SocketOf(socket.fd);
  return now.has_value() && now->inode == socket.inode;
}

void AcceptedSockets::Add(int fd) {
  const absl::optional<WireSocket> socket = SocketOf(fd);
  std::string peer = PeerOf(fd);
  if (!socket.has_value() || peer.empty()) return;
  absl::MutexLock lock(&mutex_);
  by_peer_[std::move(peer)] = *socket;
  if (by_peer_.size() > most_) ForgetClosed();
}

void AcceptedSockets::ForgetClosed() {
  absl::erase_if(by_peer_, [](const auto& entry) { return !IsOpen(entry.second); });
  most_ = std::max(most_, 2 * by_peer_.size());
}

absl::optional<WireSocket> AcceptedSockets::Find(const std::string& peer) const {
  absl::MutexLock lock(&mutex_);
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? absl::nullopt : absl::make_optional(found->second);
}

int64_t AcceptedSockets::size() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(by_peer_.size());
}

// gRPC percent-encodes the brackets of an IPv6 peer.
WireMeter::WireMeter(std::string peer, const AcceptedSockets* accepted)
    : peer_(absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}})), accepted_(accepted) {}

void WireMeter::Find() {
  if (accepted_ != nullptr) {
    if (const absl::optional<WireSocket> socket = accepted_->Find(peer_)) sockets_.push_back(*socket);
    return;
  }
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"), closedir);
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory.get())) {
    if (entry->d_name[0] == '.') continue;
    const absl::optional<WireSocket> socket = SocketOf(std::atoi(entry->d_name));
    if (socket.has_value() && PeerOf(socket->fd) == peer_) sockets_.push_back(*socket);
  }
}

WireBytes WireMeter::Read() {
  if (sockets_.empty()) Find();
  WireBytes now;
  for (const WireSocket& socket : sockets_) {
    if (!IsOpen(socket)) continue;
    tcp_info info;
    std::memset(&info, 0, sizeof info);
    socklen_t length = sizeof info;
    if (getsockopt(socket.fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) continue;
    // Closed by both sides: whether a FIN is in the count is no longer known, so the reading before stands.
    if (info.tcpi_state == kClosed) continue;
    now.sent += static_cast<int64_t>(info.tcpi_bytes_sent - info.tcpi_bytes_retrans) + info.tcpi_notsent_bytes;
    now.received += static_cast<int64_t>(info.tcpi_bytes_received) - (HasFin(info) ? 1 : 0);
  }
  last_.sent = std::max(last_.sent, now.sent);
  last_.received = std::max(last_.received, now.received);
  return last_;
}

}  // namespace terse
