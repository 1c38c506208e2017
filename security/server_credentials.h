// gRPC's server credentials over a live TLS folder. gRPC 1.51 has nothing public that takes renewed files only once
// they are whole, so this is on its C interface.
#ifndef TERSE_SECURITY_SERVER_CREDENTIALS_H_
#define TERSE_SECURITY_SERVER_CREDENTIALS_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/grpcpp.h"
#include "security/live_tls_directory.h"

namespace terse {

// Decides whether the holder of a certificate may call a method ("/package.Service/Method"). Called by gRPC's threads,
// several at once; must not block.
using CallCheck = std::function<absl::Status(absl::string_view certificate_pem, absl::string_view method)>;

// Mutual TLS with what `files` holds when a handshake begins. Each call that `check` refuses ends with that status
// before its service sees it.
std::shared_ptr<grpc::ServerCredentials> MakeLiveServerCredentials(std::shared_ptr<const LiveTlsDirectory> files,
                                                                   CallCheck check);

}  // namespace terse

#endif  // TERSE_SECURITY_SERVER_CREDENTIALS_H_
