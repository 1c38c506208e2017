#include "net/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"

namespace terse {
namespace {

constexpr size_t kIpv4Bytes = 4;
constexpr size_t kNetworkBytes = 8;  // of an IPv6 network of 64 bits
constexpr char kNoAddress[] = "this machine";

// Reads what gRPC writes of a peer.
absl::optional<sockaddr_storage> ParsePeer(absl::string_view text) {
  const size_t port = text.rfind(':');
  if (port == absl::string_view::npos) return absl::nullopt;
  sockaddr_storage address = {};
  absl::string_view host = text.substr(0, port);
  if (absl::ConsumePrefix(&host, "ipv4:")) {
    address.ss_family = AF_INET;
    in_addr* const v4 = &reinterpret_cast<sockaddr_in&>(address).sin_addr;
    if (inet_pton(AF_INET, std::string(host).c_str(), v4) != 1) return absl::nullopt;
    return address;
  }
  if (!absl::ConsumePrefix(&host, "ipv6:")) return absl::nullopt;
  const std::string plain = absl::StrReplaceAll(host, {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
  address.ss_family = AF_INET6;
  in6_addr* const v6 = &reinterpret_cast<sockaddr_in6&>(address).sin6_addr;
  // The zone of a link-local address, behind a %, is not part of it.
  if (inet_pton(AF_INET6, plain.substr(0, plain.find('%')).c_str(), v6) != 1) return absl::nullopt;
  return address;
}

}  // namespace

std::string PeerOf(const sockaddr_storage& address) {
  if (address.ss_family != AF_INET6) {
    const in_addr& v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return std::string(reinterpret_cast<const char*>(&v4), kIpv4Bytes);
  }
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  const char* const bytes = reinterpret_cast<const char*>(&v6);
  return IN6_IS_ADDR_V4MAPPED(&v6) ? std::string(bytes + 12, kIpv4Bytes) : std::string(bytes, kNetworkBytes);
}

std::string PeerOfText(absl::string_view text) {
  const absl::optional<sockaddr_storage> address = ParsePeer(text);
  return address.has_value() ? PeerOf(*address) : "";
}

std::string PeerText(absl::string_view peer) {
  char text[INET6_ADDRSTRLEN] = {};
  if (peer.size() == kIpv4Bytes) return inet_ntop(AF_INET, peer.data(), text, sizeof text);
  if (peer.size() != kNetworkBytes) return kNoAddress;
  in6_addr network = {};
  std::memcpy(&network, peer.data(), kNetworkBytes);
  return absl::StrCat(inet_ntop(AF_INET6, &network, text, sizeof text), "/64");
}

std::string HostText(const sockaddr_storage& address) {
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return kNoAddress;
  const std::string peer = PeerOf(address);
  if (peer.size() == kIpv4Bytes) return PeerText(peer);
  char text[INET6_ADDRSTRLEN] = {};
  return inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof text);
}

std::string HostTextOf(absl::string_view text) {
  const absl::optional<sockaddr_storage> address = ParsePeer(text);
  return address.has_value() ? HostText(*address) : kNoAddress;
}

std::string NetworkOfHost(absl::string_view host) {
  const bool is_v6 = host.find(':') != absl::string_view::npos;
  return PeerOfText(is_v6 ? absl::StrCat("ipv6:[", host, "]:0") : absl::StrCat("ipv4:", host, ":0"));
}

std::string HostOfSocket(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return kNoAddress;
  return HostText(address);
}

bool IsLoopback(const sockaddr_storage& address) {
  const std::string peer = PeerOf(address);
  if (peer.size() == kIpv4Bytes) return peer[0] == IN_LOOPBACKNET;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr) != 0;
}

}  // namespace terse
