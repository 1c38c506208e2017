#include "bench/fleet/metrics_page.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <map>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/host_port.h"
#include "core/status.h"

namespace terse {
namespace {

// Connects to this machine.
absl::StatusOr<int> ConnectHere(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
  const absl::Status status = absl::UnavailableError(absl::StrCat("nobody listens on port ", port));
  close(fd);
  return status;
}

}  // namespace

absl::StatusOr<std::string> FetchPage(const std::string& url, absl::string_view path) {
  const absl::string_view host_port = absl::StripSuffix(absl::StripPrefix(url, "http://"), "/");
  TERSE_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(std::string(host_port)));
  TERSE_ASSIGN_OR_RETURN(const int fd, ConnectHere(address.port));
  const auto close_it = absl::MakeCleanup([fd] { close(fd); });
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", host_port, "\r\nConnection: close\r\n\r\n");
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    return absl::UnavailableError(absl::StrCat(url, " takes no request"));
  }
  std::string reply(1 << 16, '\0'), whole;
  for (ssize_t got = 0; (got = recv(fd, reply.data(), reply.size(), 0)) > 0;) whole.append(reply, 0, got);
  if (!absl::StartsWith(whole, "HTTP/1.1 200")) {
    return absl::UnavailableError(absl::StrCat(url, path, " answers: ", whole.substr(0, whole.find('\r'))));
  }
  return whole.substr(whole.find("\r\n\r\n") + 4);
}

absl::optional<double> MedianOfHistogram(absl::string_view page, absl::string_view name) {
  std::map<double, double> below;  // the counts at or under each bound
  const std::string prefix = absl::StrCat(name, "_bucket{");
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    if (!absl::ConsumePrefix(&line, prefix)) continue;
    const size_t begin = line.find("le=\"");
    const size_t space = line.rfind(' ');
    if (begin == absl::string_view::npos || space == absl::string_view::npos) continue;
    absl::string_view bound_text = line.substr(begin + 4);
    bound_text = bound_text.substr(0, bound_text.find('"'));
    double bound = std::numeric_limits<double>::infinity(), count = 0;
    if (bound_text != "+Inf" && !absl::SimpleAtod(bound_text, &bound)) continue;
    if (absl::SimpleAtod(line.substr(space + 1), &count)) below[bound] += count;
  }
  if (below.empty() || below.rbegin()->second == 0) return absl::nullopt;
  const double half = below.rbegin()->second / 2;
  double bound_before = 0, count_before = 0;
  for (const auto& [bound, count] : below) {
    if (count < half) {
      bound_before = bound;
      count_before = count;
      continue;
    }
    if (std::isinf(bound)) return bound_before;
    return bound_before + (bound - bound_before) * (half - count_before) / (count - count_before);
  }
  return bound_before;
}

}  // namespace terse
