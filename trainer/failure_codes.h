// The names of status codes in the trainer protocol, which are those of gRPC.
#ifndef TERSE_TRAINER_FAILURE_CODES_H_
#define TERSE_TRAINER_FAILURE_CODES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace terse {

// kUnknown for a name that is none. The names are absl::StatusCodeToString's.
inline absl::StatusCode StatusCodeNamed(absl::string_view name) {
  for (int code = 1; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code) {
    if (name == absl::StatusCodeToString(static_cast<absl::StatusCode>(code))) {
      return static_cast<absl::StatusCode>(code);
    }
  }
  return absl::StatusCode::kUnknown;
}

}  // namespace terse

#endif  // TERSE_TRAINER_FAILURE_CODES_H_
