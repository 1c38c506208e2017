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

// The host alone, "192.0.2.1" or "2001:db8::1", an IPv4 address also where it is mapped: each connection has another
// port. Of a peer as gRPC writes it; "this machine" for a Unix socket's and for whatever is no address.
std::string HostText(const sockaddr_storage& address);
std::string HostTextOf(absl::string_view text);

// The bytes of PeerOf for such a host; empty for whatever is no address.
std::string NetworkOfHost(absl::string_view host);

// The host at the other end of a connected socket; "this machine" when the connection has gone or is none of TCP's.
std::string HostOfSocket(int fd);

// Whether the address is this machine's own.
bool IsLoopback(const sockaddr_storage& address);

}  // namespace terse

#endif  // TERSE_NET_PEER_H_
