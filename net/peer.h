// Whom bounds for each address count together.
#ifndef TERSE_NET_PEER_H_
#define TERSE_NET_PEER_H_

#include <sys/socket.h>

#include <string>

#include "absl/strings/string_view.h"

namespace terse {

// The bytes of an IPv4 address, also of a mapped one, or of an IPv6 network of 64 bits, of which whoever has one
// address usually has all. A network behind NAT is one peer.
std::string PeerOf(const sockaddr_storage& address);

// The same for a peer as gRPC writes it, "ipv4:192.0.2.1:4455" or "ipv6:[2001:db8::1]:4455", where the brackets may be
// %5B and %5D. Empty for whatever is no such text, a Unix socket's among it.
std::string PeerOfText(absl::string_view text);

// For people: "192.0.2.1", "2001:db8:0:1::/64"; "this machine" for an empty peer.
std::string PeerText(absl::string_view peer);

// Whether the address is this machine's own.
bool IsLoopback(const sockaddr_storage& address);

}  // namespace terse

#endif  // TERSE_NET_PEER_H_
