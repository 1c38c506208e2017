// Traces of rounds for OpenTelemetry.
#ifndef TERSE_TERSECTL_FOLLOW_OTLP_TARGET_H_
#define TERSE_TERSECTL_FOLLOW_OTLP_TARGET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tersectl/follow/target.h"

namespace terse {

struct OtlpOptions {
  std::string url;                   // of the collector; /v1/traces is added unless it ends so
  std::vector<std::string> headers;  // "Name: value", with each request
  std::string state;                 // folder of the position files; empty: there are none
  uint32_t clients = 100;            // in a trace, the slowest
  std::function<bool()> give_up;     // HttpClient::Options::give_up
};

// Sends a trace for each settled round, as OTLP over HTTP in JSON (opentelemetry-proto 1.0):
//
//   round N            from opening to commit or abort
//     collecting       from opening to closing
//     committing       from closing to commit
//     client NAME      from its assignment to its verdict, as far as the coordinator keeps traces (--trace-rounds)
//       assignment     until its training began: receiving the work, and the model with it
//       training       of the time that the client says, placed right before its upload
//       upload         from the first piece of its update to the last
//       verdict        from there to its verdict
//
// Each request has spans of one round, and at most 2,000 of them, so that a collector that was away takes what it has
// missed in pieces. The ids are hashes of lineage, round, client and phase, so that a trace that is sent again has the
// same ones. Without a position file it begins with the rounds that are settled from the start of the process on.
std::unique_ptr<FollowTarget> MakeOtlpTarget(OtlpOptions options);

// Returns the headers that OTEL_EXPORTER_OTLP_HEADERS names, "name=value,name=value" with %XX in the values.
// INVALID_ARGUMENT for anything else, without quoting it.
absl::StatusOr<std::vector<std::string>> OtlpHeaders();

}  // namespace terse

#endif  // TERSE_TERSECTL_FOLLOW_OTLP_TARGET_H_
