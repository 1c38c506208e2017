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

absl::optional<uint64_t> SocketInode(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISSOCK(info.st_mode)) return absl::nullopt;
  return info.st_ino;
}

// gRPC percent-encodes the brackets of an IPv6 peer.
WireMeter::WireMeter(std::string peer) : peer_(absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}})) {}

void WireMeter::Find() {
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"), closedir);
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory.get())) {
    if (entry->d_name[0] == '.') continue;
    const int fd = std::atoi(entry->d_name);
    const absl::optional<uint64_t> inode = SocketInode(fd);
    if (inode.has_value() && PeerOf(fd) == peer_) sockets_.push_back({fd, *inode});
  }
}

WireBytes WireMeter::Read() {
  if (sockets_.empty()) Find();
  WireBytes now;
  for (const Socket& socket : sockets_) {
    // A descriptor may have been closed and given to another connection since it was found.
    if (SocketInode(socket.fd) != absl::optional<uint64_t>(socket.inode)) continue;
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
