// What protects a connection: mutual TLS 1.3 with the certificates of a TLS folder, or nothing, which is for one
// machine.
#ifndef TERSE_SECURITY_TRANSPORT_H_
#define TERSE_SECURITY_TRANSPORT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "grpcpp/grpcpp.h"
#include "security/certificate.h"
#include "security/tls_directory.h"
#include "security/transport_options.h"

namespace terse {

// How often a program looks for renewed files in its TLS folder, and a coordinator at its connections' certificates.
inline constexpr int kTlsReloadSeconds = 1;

// A Unix socket: "unix:/path".
bool IsUnixSocket(const std::string& address);
// Whether only this machine reaches the address: a Unix socket, "localhost", 127.0.0.0/8, [::1].
bool IsLocalAddress(const std::string& address);

// Credentials for listening on `address`: a coordinator's TLS 1.3 that wants a certificate of every peer; cleartext on
// Unix sockets, and without a TLS folder. `processor`, for TLS only, sees every call; may be empty.
// FAILED_PRECONDITION for cleartext that other machines would reach, unless `insecure`; statuses of OpenTlsDirectory.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenWith(
    const TransportOptions& options, const std::string& address,
    const std::shared_ptr<grpc::AuthMetadataProcessor>& processor);

// Whether ConnectWith has what it needs. FAILED_PRECONDITION for cleartext to another machine, unless `insecure`;
// statuses of OpenTlsDirectory.
absl::Status CheckConnectWith(const TransportOptions& options, const std::string& address,
                              const std::vector<Role>& roles);
// Credentials for calling `address` as one of `roles`, and what they need of the channel's `arguments`. The peer must
// have a coordinator's certificate for that host, or for `server_name`. Statuses of CheckConnectWith.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ConnectWith(const TransportOptions& options,
                                                                      const std::string& address,
                                                                      const std::vector<Role>& roles,
                                                                      grpc::ChannelArguments* arguments);

// The certificate that the peer of a call has shown; nullopt on a connection in cleartext. INVALID_ARGUMENT when it is
// not one of ours.
absl::StatusOr<absl::optional<CertificateFacts>> PeerCertificate(const grpc::AuthContext& context);

}  // namespace terse

#endif  // TERSE_SECURITY_TRANSPORT_H_
