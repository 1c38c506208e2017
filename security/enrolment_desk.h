// The authority's side of enrolment: a small gRPC service over its folder, `tersectl pki serve`.
#ifndef TERSE_SECURITY_ENROLMENT_DESK_H_
#define TERSE_SECURITY_ENROLMENT_DESK_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace terse {

struct EnrolmentDeskOptions {
  std::string authority;           // the authority's folder
  std::string listen;              // HOST:PORT; port 0 takes a free one
  std::vector<std::string> hosts;  // under which guests reach it, for its certificate
  // Gets one line about what came of a request, about connections that were reset, or about TLS handshakes that failed,
  // one a minute for each address, for a log. Called by threads of the desk's and of gRPC's, one at a time.
  std::function<void(absl::string_view)> log = [](absl::string_view) {};
};

// Refusals that an address gets with their reasons, and as many at once. Beyond them it is told to wait, and the log
// says so once a minute. A guest that is not refused never waits, so that a wrong neighbour behind the same address
// keeps nobody out.
inline constexpr double kRefusalsPerMinute = 12;
inline constexpr double kRefusalsAtOnce = 12;

// Serves while it lives. A secret and its request are checked without a lock; only for those that are good the
// authority's folder is locked, one at a time, so that other commands work meanwhile. A request waits for them for a
// while, then it is UNAVAILABLE. Connections are bounded, in all and for each address, also for this machine's own, and
// none lasts that does not ask. Thread-safe.
class EnrolmentDesk {
 public:
  // The desk's own certificate is a coordinator's, named "enrolment", for `hosts`; its key is never written. Statuses
  // of Authority, UNAVAILABLE when it cannot listen, and FAILED_PRECONDITION when the system allows too few open files.
  static absl::StatusOr<std::unique_ptr<EnrolmentDesk>> Start(EnrolmentDeskOptions options);
  ~EnrolmentDesk();

  int port() const;
  absl::Time not_after() const;  // of its certificate

 private:
  class Impl;
  explicit EnrolmentDesk(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace terse

#endif  // TERSE_SECURITY_ENROLMENT_DESK_H_
