// A longer text beside the one line of a status, for the log of the process that handles it.
#ifndef TERSE_CORE_STATUS_DETAILS_H_
#define TERSE_CORE_STATUS_DETAILS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace terse {

inline constexpr char kDetailsPayload[] = "terse/details";

// Returns `status` with `details`, such as the backtrace of a user's model. Nothing sends them to another machine.
inline absl::Status WithDetails(absl::Status status, absl::string_view details) {
  if (!status.ok() && !details.empty()) status.SetPayload(kDetailsPayload, absl::Cord(details));
  return status;
}

// Returns the details of a status; empty where there are none.
inline std::string DetailsOf(const absl::Status& status) {
  const auto details = status.GetPayload(kDetailsPayload);
  return details.has_value() ? std::string(*details) : std::string();
}

}  // namespace terse

#endif  // TERSE_CORE_STATUS_DETAILS_H_
