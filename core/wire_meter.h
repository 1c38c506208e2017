// Counts what really crosses a TCP connection: every byte between the two sockets, with HTTP/2 and gRPC framing,
// headers, window updates and TLS where it is on; without TCP/IP headers and retransmissions. Read from the kernel
// (TCP_INFO).
#ifndef TERSE_CORE_WIRE_METER_H_
#define TERSE_CORE_WIRE_METER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"

namespace terse {

// Returns the number of the socket behind a descriptor, which no other open socket has. With both, a caller can tell
// later whether the descriptor was closed and given to something else meanwhile. nullopt when it is no socket, or
// closed.
absl::optional<uint64_t> SocketInode(int fd);

struct WireBytes {
  int64_t sent = 0;      // by this process, acknowledged or under way
  int64_t received = 0;  // by this process
};

// The connections of this process with one peer. Finds their descriptors once and checks at every reading that they
// still belong to that peer; a closed connection keeps the last reading. Not thread-safe.
class WireMeter {
 public:
  // `peer` as gRPC prints it: "ipv4:127.0.0.1:4455" or "ipv6:[::1]:4455".
  explicit WireMeter(std::string peer);

  // Returns the bytes since the connections were opened. Linux only; elsewhere zero.
  WireBytes Read();

 private:
  void Find();

  struct Socket {
    int fd;
    uint64_t inode;
  };
  const std::string peer_;
  std::vector<Socket> sockets_;
  WireBytes last_;
};

}  // namespace terse

#endif  // TERSE_CORE_WIRE_METER_H_
