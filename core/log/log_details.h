// The details of a status (core/status_details.h) in the log.
#ifndef TERSE_CORE_LOG_LOG_DETAILS_H_
#define TERSE_CORE_LOG_LOG_DETAILS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/log/log.h"

namespace terse {

// Writes every line of the details as a line of the log, at level debug: the status has what most people need. Without
// details it writes nothing. Thread-safe.
void LogDetails(absl::string_view component, const LogFields& fields, const absl::Status& status);

}  // namespace terse

#endif  // TERSE_CORE_LOG_LOG_DETAILS_H_
