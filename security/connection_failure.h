// Puts gRPC's texts about failed connections in words for people.
#ifndef TERSE_SECURITY_CONNECTION_FAILURE_H_
#define TERSE_SECURITY_CONNECTION_FAILURE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace terse {

// How this end spoke: in cleartext, with a certificate from --tls, or over TLS as a guest that has no certificate yet.
enum class Spoke { kCleartext, kTls, kTlsAsGuest };

// Why nobody answered a call or why it broke off: "nobody listens there", "it did not answer in time". `grpc_text` is
// the message of a grpc::Status, of which those of failed connections are put in words; any other, such as the peer's
// reason for a refusal, is returned as it is. Where the other end does the opposite of `spoke`, the text says which
// option to give or to leave away; a guest has no such options, and hears the reason alone. Pure.
std::string ConnectionFailureText(absl::string_view grpc_text, Spoke spoke);

// Keeps gRPC from logging to standard error, unless the environment has GRPC_VERBOSITY. For the start of a program:
// before its first channel or server, and before it has threads of its own.
void QuietGrpc();

}  // namespace terse

#endif  // TERSE_SECURITY_CONNECTION_FAILURE_H_
