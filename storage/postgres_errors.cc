#include "storage/postgres_errors.h"

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace terse {
namespace {

// A class or a code of SQLSTATE, and what it means here. The first that fits counts.
struct Meaning {
  absl::string_view sqlstate;
  absl::StatusCode code;
};
constexpr Meaning kMeanings[] = {{"42501", absl::StatusCode::kPermissionDenied},  // insufficient privilege
                                 {"25006", absl::StatusCode::kUnavailable},       // the server is a standby
                                 {"25P03", absl::StatusCode::kUnavailable},       // idle in transaction for too long
                                 {"55P03", absl::StatusCode::kUnavailable},       // a lock was not to be had
                                 {"08", absl::StatusCode::kUnavailable},          // connection
                                 {"40", absl::StatusCode::kUnavailable},          // the transaction was rolled back
                                 {"57", absl::StatusCode::kUnavailable},          // an operator intervened
                                 {"58", absl::StatusCode::kUnavailable},          // the server's system failed
                                 {"53", absl::StatusCode::kResourceExhausted},    // disk, memory, connections
                                 {"54", absl::StatusCode::kUnimplemented},        // a limit of PostgreSQL
                                 {"28", absl::StatusCode::kPermissionDenied},     // authentication
                                 {"23", absl::StatusCode::kFailedPrecondition},   // a constraint
                                 {"XX001", absl::StatusCode::kDataLoss},
                                 {"XX002", absl::StatusCode::kDataLoss}};

}  // namespace

absl::StatusCode CodeOfSqlstate(absl::string_view sqlstate) {
  for (const Meaning& meaning : kMeanings) {
    if (absl::StartsWith(sqlstate, meaning.sqlstate)) return meaning.code;
  }
  return absl::StatusCode::kInternal;
}

absl::string_view PostgresRemedyFor(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return "; give the server more room, memory or connections";
    case absl::StatusCode::kUnavailable:
      return "; check that the server runs and can be reached";
    case absl::StatusCode::kDataLoss:
      return kPostgresRemedy;
    case absl::StatusCode::kPermissionDenied:
      return "; check the user, its password file and its rights in the database";
    default:
      return "";
  }
}

std::string OneLine(absl::string_view message) {
  return absl::StrReplaceAll(absl::StripSuffix(message, "\n"), {{"\n\t", "; "}, {"\n", "; "}, {"\t", " "}});
}

}  // namespace terse
