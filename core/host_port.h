// Addresses that people give: "host:port", "[IPv6]:port" and, where a coordinator's operators connect, "unix:PATH".
#ifndef TERSE_CORE_HOST_PORT_H_
#define TERSE_CORE_HOST_PORT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace terse {

inline constexpr int kLargestPort = 65535;

struct HostPort {
  std::string host;  // a name or an address, an IPv6 one without its brackets; not empty
  int port = 0;      // 0 to kLargestPort; 0 takes a free one, where somebody listens
};

// INVALID_ARGUMENT, quoting the address and saying what to give, unless it has a host and a port up to kLargestPort.
// An IPv6 address must be in brackets, so that its last group is no port. Whether the host exists is not looked up.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view address);

// "host:port", with brackets around an IPv6 address.
std::string HostPortText(const HostPort& address);

// Whether one can connect there: as ParseHostPort, and INVALID_ARGUMENT also for port 0.
absl::Status CheckDialAddress(absl::string_view address);

// Whether the address has the scheme "unix:" of a Unix socket.
bool IsUnixSocket(absl::string_view address);

}  // namespace terse

#endif  // TERSE_CORE_HOST_PORT_H_
