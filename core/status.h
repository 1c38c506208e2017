// Macros for code that passes absl::Status upwards. Every fallible function in Terse returns absl::Status or
// absl::StatusOr; messages name the place, the reason and the remedy.
#ifndef TERSE_CORE_STATUS_H_
#define TERSE_CORE_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#define TERSE_CONCAT_INNER_(a, b) a##b
#define TERSE_CONCAT_(a, b) TERSE_CONCAT_INNER_(a, b)

// Returns the status of `expr` from the enclosing function unless it is OK.
#define TERSE_RETURN_IF_ERROR(expr)                                   \
  do {                                                                \
    if (::absl::Status terse_status_ = (expr); !terse_status_.ok()) { \
      return terse_status_;                                           \
    }                                                                 \
  } while (false)

// Evaluates a StatusOr; assigns its value to `lhs` or returns its status.
#define TERSE_ASSIGN_OR_RETURN(lhs, expr) TERSE_ASSIGN_OR_RETURN_IMPL_(TERSE_CONCAT_(terse_or_, __LINE__), lhs, expr)
#define TERSE_ASSIGN_OR_RETURN_IMPL_(var, lhs, expr) \
  auto var = (expr);                                 \
  if (!var.ok()) return std::move(var).status();     \
  lhs = *std::move(var)

namespace terse {

// Returns the status with `context` put before its message ("opening run.toml: ...").
inline absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

}  // namespace terse

#endif  // TERSE_CORE_STATUS_H_
