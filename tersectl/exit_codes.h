// The exit codes of tersectl.
#ifndef TERSE_TERSECTL_EXIT_CODES_H_
#define TERSE_TERSECTL_EXIT_CODES_H_

#include "absl/status/status.h"

namespace terse {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // the coordinator refused, a file could not be written, runs differ, ...
inline constexpr int kExitUsage = 2;   // the command line is wrong; `run diff`, `run compare`: a run cannot be read
inline constexpr int kExitUnreachable = 3;  // no coordinator answers at the address
inline constexpr int kExitInvalidRun = 4;   // `validate`, `run create`, `run diff`: the run file breaks a rule

// The exit codes by which a command says how it failed.
struct ExitCodes {
  int unavailable = kExitFailed;
  int invalid_argument = kExitFailed;
  int aborted = kExitFailed;
  int other = kExitFailed;

  int Of(const absl::Status& status) const {
    switch (status.code()) {
      case absl::StatusCode::kOk:
        return kExitOk;
      case absl::StatusCode::kUnavailable:
        return unavailable;
      case absl::StatusCode::kInvalidArgument:
        return invalid_argument;
      case absl::StatusCode::kAborted:
        return aborted;
      default:
        return other;
    }
  }
};

inline constexpr ExitCodes kLocalCodes = {};
inline constexpr ExitCodes kRemoteCodes = {kExitUnreachable};
inline constexpr ExitCodes kValidateCodes = {kExitFailed, kExitInvalidRun};
inline constexpr ExitCodes kCreateCodes = {kExitUnreachable, kExitInvalidRun};
// Only the rounds tell which columns there are.
inline constexpr ExitCodes kMetricsCodes = {kExitUnreachable, kExitUsage};
inline constexpr ExitCodes kCompareCodes = {kExitUnreachable, kExitUsage};
// `follow`: INVALID_ARGUMENT is a command line without a place to hand news to.
inline constexpr ExitCodes kFollowCodes = {kExitUnreachable, kExitUsage};
// As diff(1): 1 means that they differ, and only that.
inline constexpr ExitCodes kDiffCodes = {kExitUnreachable, kExitInvalidRun, kExitFailed, kExitUsage};

}  // namespace terse

#endif  // TERSE_TERSECTL_EXIT_CODES_H_
