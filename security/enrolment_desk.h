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
  // Of what came of a request, one line, for a log. Called by gRPC's threads, one at a time.
  std::function<void(absl::string_view)> log = [](absl::string_view) {};
};

// Serves while it lives. The authority's folder is locked for a request only, so that other commands work meanwhile; a
// request waits for them for a while, then it is UNAVAILABLE. Requests are handled one at a time, and few wait.
// Thread-safe.
class EnrolmentDesk {
 public:
  // The desk's own certificate is a coordinator's, named "enrolment", for `hosts`; its key is never written. Statuses
  // of Authority, and UNAVAILABLE when it cannot listen.
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
