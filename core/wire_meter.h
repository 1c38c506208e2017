// Counts what really crosses a TCP connection: every byte between the two sockets, with HTTP/2 and gRPC framing,
// headers, window updates and TLS where it is on; without TCP/IP headers and retransmissions. Read from the kernel
// (TCP_INFO).
#ifndef TERSE_CORE_WIRE_METER_H_
#define TERSE_CORE_WIRE_METER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"

namespace terse {

struct WireBytes {
  int64_t sent = 0;      // by this process, acknowledged or under way
  int64_t received = 0;  // by this process
};

// A descriptor with the number of the socket behind it, which no other open socket has: it may be closed and given to
// something else at any time, and IsOpen tells.
struct WireSocket {
  int fd = -1;
  uint64_t inode = 0;
};

// nullopt when the descriptor is no socket, or closed.
absl::optional<WireSocket> SocketOf(int fd);
bool IsOpen(const WireSocket& socket);

// The connections that a process took, by their peers, so that a meter need not look through all descriptors: with
// 10,000 connections that takes milliseconds. Thread-safe.
class AcceptedSockets {
 public:
  // A connected socket, before it goes to who will close it. O(1), amortised.
  void Add(int fd);
  // The newest with this peer, as gRPC prints it, that may be closed by now.
  absl::optional<WireSocket> Find(const std::string& peer) const;
  // Connections that are kept: at most twice the open ones, or 1,024.
  int64_t size() const;

 private:
  void ForgetClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, WireSocket> by_peer_ ABSL_GUARDED_BY(mutex_);
  size_t most_ ABSL_GUARDED_BY(mutex_) = 1024;  // when there are more, the closed ones are forgotten
};

// The connections of this process with one peer. Finds their descriptors once and checks at every reading that they
// still belong to that peer; a closed connection keeps the last reading. Not thread-safe.
class WireMeter {
 public:
  // `peer` as gRPC prints it: "ipv4:127.0.0.1:4455" or "ipv6:[::1]:4455". Its connections are looked for among
  // `accepted`, which must outlive the meter; without it, among all descriptors of the process.
  explicit WireMeter(std::string peer, const AcceptedSockets* accepted = nullptr);

  // Returns the bytes since the connections were opened. Linux only; elsewhere zero.
  WireBytes Read();

 private:
  void Find();

  const std::string peer_;
  const AcceptedSockets* const accepted_;
  std::vector<WireSocket> sockets_;
  WireBytes last_;
};

}  // namespace terse

#endif  // TERSE_CORE_WIRE_METER_H_
