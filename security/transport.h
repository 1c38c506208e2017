// Protects connections: mutual TLS 1.3 with the certificates of a TLS folder, or nothing, which is for one machine.
#ifndef TERSE_SECURITY_TRANSPORT_H_
#define TERSE_SECURITY_TRANSPORT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "core/host_port.h"
#include "grpcpp/grpcpp.h"
#include "security/certificate.h"
#include "security/live_tls_directory.h"
#include "security/server_credentials.h"
#include "security/tls_directory.h"
#include "security/transport_options.h"

namespace terse {

// The seconds between a coordinator's looks for renewed files in its TLS folder, and at its calls' certificates. The
// other programs read their files for every connection.
inline constexpr int kTlsReloadSeconds = 1;

// A Unix socket: "unix:/path", where gRPC wants what is special in a URI as %XX.
std::string UnixSocketAddress(absl::string_view path);
// INVALID_ARGUMENT when `address` is no Unix socket or has a % that is not the start of %XX.
absl::StatusOr<std::string> UnixSocketPath(const std::string& address);
// Whether a connection to the address is without TLS.
bool IsCleartext(const TransportOptions& options, const std::string& address);
// Whether only this machine reaches the address: a Unix socket, "localhost", 127.0.0.0/8, [::1]; not an address that
// ParseHostPort refuses.
bool IsLocalAddress(const std::string& address);
// FAILED_PRECONDITION for an address that other machines reach, unless `insecure`.
absl::Status CheckCleartext(bool insecure, const std::string& address);

// Credentials for listening on `address`: TLS 1.3 with `files` and `check`, which wants a certificate of every peer;
// cleartext on Unix sockets, and where `files` is nullptr. FAILED_PRECONDITION for cleartext that other machines would
// reach, unless `insecure`.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenWith(const std::string& address, bool insecure,
                                                                    std::shared_ptr<const LiveTlsDirectory> files,
                                                                    CallCheck check);

// Checks that ConnectWith has what it needs but for the time, which may come or be mended. FAILED_PRECONDITION for
// cleartext to another machine, unless `insecure`; statuses of ReadTlsDirectory.
absl::Status CheckConnectWith(const TransportOptions& options, const std::string& address,
                              const std::vector<Role>& roles);
// Credentials for calling `address` as one of `roles`, and what they need of the channel's `arguments`. The peer must
// have a coordinator's certificate for that host, or for `server_name`. The files are read once: who renews them
// connects again. INVALID_ARGUMENT for an address that is none; statuses of CheckConnectWith and OpenTlsDirectory.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ConnectWith(const TransportOptions& options,
                                                                      const std::string& address,
                                                                      const std::vector<Role>& roles,
                                                                      grpc::ChannelArguments* arguments);

// The two ends of enrolment (security/enrolment.h), where one has no certificate yet: TLS 1.3 with the listener's
// alone.
std::shared_ptr<grpc::ServerCredentials> ListenForGuests(const std::string& certificate_pem,
                                                         const std::string& key_pem);
std::shared_ptr<grpc::ChannelCredentials> ConnectAsGuest(const std::string& authority_pem);

// The certificate that the peer of a call has shown; nullopt on a connection in cleartext. INVALID_ARGUMENT when it is
// not one of ours.
absl::StatusOr<absl::optional<CertificateFacts>> PeerCertificate(const grpc::AuthContext& context);

}  // namespace terse

#endif  // TERSE_SECURITY_TRANSPORT_H_
