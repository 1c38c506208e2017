// Puts gRPC's texts about failed connections in words for people.
#ifndef TERSE_SECURITY_CONNECTION_FAILURE_H_
#define TERSE_SECURITY_CONNECTION_FAILURE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace terse {

// Why nobody answered a call or why it broke off: "nobody listens there", "it did not answer in time". `grpc_text` is
// the message of a grpc::Status that is UNAVAILABLE or DEADLINE_EXCEEDED. `with_tls`: whether this end spoke TLS; where
// the other end does the opposite, the text says which option to give or to leave away. A text that is not gRPC's own,
// such as the peer's reason for a refusal, is returned as it is. Pure.
std::string ConnectionFailureText(absl::string_view grpc_text, bool with_tls);

// Keeps gRPC from logging to standard error, unless the environment has GRPC_VERBOSITY. For the start of a program:
// before its first channel or server, and before it has threads.
void QuietGrpc();

}  // namespace terse

#endif  // TERSE_SECURITY_CONNECTION_FAILURE_H_
