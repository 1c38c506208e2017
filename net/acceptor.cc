#include "net/acceptor.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/host_port.h"
#include "core/status.h"
#include "net/open_files.h"
#include "net/peer.h"

namespace terse {
namespace {

// Connections that are not accepted yet wait in the kernel. Beyond this number clients try again by themselves.
constexpr int kBacklog = 1024;
constexpr int64_t kPruneIntervalUs = 100'000;
constexpr int64_t kLogIntervalUs = 60'000'000;
constexpr int kPauseMilliseconds = 100;

absl::Status SystemError() {
  switch (errno) {
    case EADDRINUSE:
      return absl::UnavailableError("the port is in use");
    case EADDRNOTAVAIL:
      return absl::UnavailableError("the address is not this machine's");
    default:
      return absl::UnavailableError(std::strerror(errno));
  }
}

int PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// `port` replaces that of the address unless it is 0.
absl::StatusOr<int> ListenOn(const addrinfo& info, int port) {
  const int fd = socket(info.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return SystemError();
  auto close_it = absl::MakeCleanup([fd] { close(fd); });
  const int yes = 1, no = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (info.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  sockaddr_storage address = {};
  std::memcpy(&address, info.ai_addr, info.ai_addrlen);
  if (port != 0) {
    (info.ai_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                : reinterpret_cast<sockaddr_in&>(address).sin_port) = htons(port);
  }
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), info.ai_addrlen) != 0) return SystemError();
  if (listen(fd, kBacklog) != 0) return SystemError();
  std::move(close_it).Cancel();
  return fd;
}

// The peer hears at once that there is no place for it.
void Reset(int fd) {
  const linger at_once = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close(fd);
}

int64_t NowUs() { return absl::GetCurrentTimeNanos() / 1000; }

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(const Options& options) {
  TERSE_ASSIGN_OR_RETURN(HostPort where, ParseHostPort(options.address));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(where.host.c_str(), absl::StrCat(where.port).c_str(), &hints, &found);
  if (error != 0) return absl::UnavailableError(absl::StrCat(where.host, ": ", gai_strerror(error)));
  const absl::Cleanup free_it = [found] { freeaddrinfo(found); };
  std::vector<int> listening;
  absl::Status status;
  int port = 0;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    const absl::StatusOr<int> fd = ListenOn(*info, port);
    status.Update(fd.status());
    if (!fd.ok()) continue;
    listening.push_back(*fd);
    port = PortOf(*fd);
  }
  // A name may have an address that this machine lacks; a port that is taken on one of them is nobody's.
  if (listening.empty()) return status;
  where.port = port;
  return std::unique_ptr<Acceptor>(new Acceptor(options, listening, HostPortText(where)));
}

Acceptor::Acceptor(Options options, std::vector<int> listening, std::string address)
    : options_(std::move(options)),
      listening_(std::move(listening)),
      address_(std::move(address)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Acceptor::~Acceptor() {
  if (thread_.joinable()) {
    eventfd_write(wake_, 1);
    thread_.join();
  }
  for (const int fd : listening_) close(fd);
  close(wake_);
}

void Acceptor::Start(Take take) {
  take_ = std::move(take);
  thread_ = std::thread([this] { AcceptUntilClosed(); });
}

void Acceptor::AcceptUntilClosed() {
  std::vector<pollfd> polled = {{wake_, POLLIN, 0}};
  for (const int fd : listening_) polled.push_back({fd, POLLIN, 0});
  while (true) {
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    for (size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents != 0) AcceptAll(polled[i].fd);
    }
  }
}

void Acceptor::AcceptAll(int listening) {
  while (true) {
    sockaddr_storage peer = {};
    socklen_t size = sizeof(peer);
    const int connected = accept4(listening, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connected >= 0) {
      const bool is_counted = options_.bounds.loopback_too || !IsLoopback(peer);
      Admit(listening, connected, is_counted ? PeerOf(peer) : Peer());
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    // Without a file to open or memory, what waits goes on waiting, and so does the end of this object.
    if (const int64_t now_us = NowUs(); now_us - failure_logged_us_ >= kLogIntervalUs) {
      options_.log(LogLevel::kError,
                   absl::StrCat(address_, ": cannot take a connection: ", std::strerror(errno), "; trying again"));
      failure_logged_us_ = now_us;
    }
    pollfd wake = {wake_, POLLIN, 0};
    poll(&wake, 1, kPauseMilliseconds);
    return;
  }
}

void Acceptor::Admit(int listening, int connected, const Peer& peer) {
  const int64_t now_us = NowUs();
  if (!HasRoom(peer) && now_us - pruned_us_ >= kPruneIntervalUs) {
    Prune();
    pruned_us_ = now_us;
  }
  if (HasRoom(peer)) {
    taken_[peer].push_back(SocketOf(connected).value_or(WireSocket()));
    ++count_;
    if (options_.accepted != nullptr) options_.accepted->Add(connected);
    const int yes = 1;
    setsockopt(connected, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    take_(listening, connected);
    return;
  }
  Reset(connected);
  ++reset_;
  if (now_us - logged_us_ < kLogIntervalUs) return;
  options_.log(LogLevel::kWarn,
               absl::StrCat(reset_, " connection(s) to ", address_, " reset: there may be ",
                            options_.bounds.connections, " at a time, and ", options_.bounds.per_address,
                            " from one address", options_.option.empty() ? "" : "; see ", options_.option));
  logged_us_ = now_us;
  reset_ = 0;
}

// Those that only the sum bounds are the empty peer.
bool Acceptor::HasRoom(const Peer& peer) const {
  if (count_ >= options_.bounds.connections) return false;
  const auto found = taken_.find(peer);
  return peer.empty() || found == taken_.end() ||
         static_cast<int64_t>(found->second.size()) < options_.bounds.per_address;
}

void Acceptor::Prune() {
  count_ = 0;
  for (auto it = taken_.begin(); it != taken_.end();) {
    std::vector<WireSocket>& taken = it->second;
    taken.erase(std::remove_if(taken.begin(), taken.end(), [](const WireSocket& one) { return !IsOpen(one); }),
                taken.end());
    count_ += static_cast<int64_t>(taken.size());
    if (taken.empty()) {
      taken_.erase(it++);
    } else {
      ++it;
    }
  }
}

absl::StatusOr<Acceptor::Bounds> ConnectionBounds(int64_t connections, int64_t per_address) {
  TERSE_ASSIGN_OR_RETURN(const int64_t files, RaiseOpenFiles());
  const int64_t most = files - kFilesForOthers;
  if (connections > most || most < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max-connections ", connections, " needs ", std::max<int64_t>(1, connections) + kFilesForOthers,
        " open files, and the system allows ", files, "; raise that (ulimit -n, LimitNOFILE=) or ask for less"));
  }
  Acceptor::Bounds bounds;
  bounds.connections = connections == 0 ? most : connections;
  bounds.per_address = per_address == 0 ? (bounds.connections + 1) / 2 : per_address;
  return bounds;
}

}  // namespace terse
