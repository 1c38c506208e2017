#include "core/host_port.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

absl::Status NoAddress(absl::string_view address) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", address, "' is no address; give HOST:PORT, for example 127.0.0.1:7700 or [::1]:7700"));
}

bool HasOnlyDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isdigit(c); });
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || IsUnixSocket(address)) return NoAddress(address);
  absl::string_view host = address.substr(0, colon);
  const absl::string_view port_text = address.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const bool has_host = !host.empty() && host.find_first_of("[]/ ") == absl::string_view::npos;
  if (!has_host || (!bracketed && absl::StrContains(host, ":")) || !HasOnlyDigits(port_text)) return NoAddress(address);
  int port = 0;
  if (!absl::SimpleAtoi(port_text, &port) || port > kLargestPort) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", address, "' has the port ", port_text, "; ports go up to ", kLargestPort));
  }
  return HostPort{std::string(host), port};
}

std::string HostPortText(const HostPort& address) {
  const bool is_ipv6 = absl::StrContains(address.host, ":");
  return absl::StrCat(is_ipv6 ? "[" : "", address.host, is_ipv6 ? "]:" : ":", address.port);
}

absl::Status CheckDialAddress(absl::string_view address) {
  TERSE_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  if (parsed.port > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("nobody can connect to port 0 of '", address, "'; give the port on which the other side listens"));
}

bool IsUnixSocket(absl::string_view address) { return absl::StartsWith(address, "unix:"); }

}  // namespace terse
