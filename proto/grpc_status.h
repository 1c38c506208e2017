// The one place where absl::Status becomes grpc::Status, and the other way round.
#ifndef TERSE_PROTO_GRPC_STATUS_H_
#define TERSE_PROTO_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace terse {

// The canonical codes of both have the same numbers; the message goes along.
inline grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

inline absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace terse

#endif  // TERSE_PROTO_GRPC_STATUS_H_
