#include "security/transport.h"

#include <arpa/inet.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace terse {
namespace {

// Host of "host:port" and of "[host]:port".
std::string HostOf(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  const bool in_brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  return in_brackets ? host.substr(1, host.size() - 2) : host;
}

bool IsCleartext(const TransportOptions& options, const std::string& address) {
  return IsUnixSocket(address) || options.tls_directory.empty();
}

absl::Status CheckCleartext(const TransportOptions& options, const std::string& address) {
  if (options.insecure || IsLocalAddress(address)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      address,
      " is reached over a network, where cleartext can be read and forged: give --tls DIR (docs/SECURITY.md "
      "says how to make certificates), or --insecure if something else protects that network"));
}

// gRPC 1.51 asks for TLS 1.2 or newer and has no option for more; only its list of ciphers is open. This one has none
// that TLS 1.2 could agree on with our keys, which are ECDSA. Read by gRPC once, before its first TLS connection.
void AllowOnlyTls13() {
  setenv("GRPC_SSL_CIPHER_SUITES",
         "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:ECDHE-RSA-AES128-GCM-SHA256",
         /*overwrite=*/1);
}

// Looks for renewed files by itself.
std::shared_ptr<grpc::experimental::CertificateProviderInterface> FilesOf(const std::string& directory) {
  return std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      absl::StrCat(directory, "/", kKeyFile), absl::StrCat(directory, "/", kCertificateFile),
      absl::StrCat(directory, "/", kAuthorityFile), kTlsReloadSeconds);
}

void Watch(grpc::experimental::TlsCredentialsOptions* options) {
  options->watch_root_certs();
  options->watch_identity_key_cert_pairs();
}

}  // namespace

bool IsUnixSocket(const std::string& address) { return absl::StartsWith(address, "unix:"); }

bool IsLocalAddress(const std::string& address) {
  const std::string host = HostOf(address);
  in_addr ipv4 = {};
  const bool is_loopback = inet_pton(AF_INET, host.c_str(), &ipv4) == 1 && (ntohl(ipv4.s_addr) >> 24) == IN_LOOPBACKNET;
  return IsUnixSocket(address) || host == "localhost" || is_loopback || host == "::1";
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenWith(
    const TransportOptions& options, const std::string& address,
    const std::shared_ptr<grpc::AuthMetadataProcessor>& processor) {
  if (IsCleartext(options, address)) {
    TERSE_RETURN_IF_ERROR(CheckCleartext(options, address));
    return grpc::InsecureServerCredentials();
  }
  TERSE_RETURN_IF_ERROR(OpenTlsDirectory(options.tls_directory, {Role::kCoordinator}).status());
  AllowOnlyTls13();
  grpc::experimental::TlsServerCredentialsOptions tls(FilesOf(options.tls_directory));
  Watch(&tls);
  tls.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::experimental::TlsServerCredentials(tls);
  if (processor != nullptr) credentials->SetAuthMetadataProcessor(processor);
  return credentials;
}

absl::Status CheckConnectWith(const TransportOptions& options, const std::string& address,
                              const std::vector<Role>& roles) {
  if (IsCleartext(options, address)) return CheckCleartext(options, address);
  return OpenTlsDirectory(options.tls_directory, roles).status();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ConnectWith(const TransportOptions& options,
                                                                      const std::string& address,
                                                                      const std::vector<Role>& roles,
                                                                      grpc::ChannelArguments* arguments) {
  TERSE_RETURN_IF_ERROR(CheckConnectWith(options, address, roles));
  if (IsCleartext(options, address)) return grpc::InsecureChannelCredentials();
  AllowOnlyTls13();
  if (!options.server_name.empty()) arguments->SetSslTargetNameOverride(options.server_name);
  grpc::experimental::TlsChannelCredentialsOptions tls;
  tls.set_certificate_provider(FilesOf(options.tls_directory));
  Watch(&tls);
  return grpc::experimental::TlsCredentials(tls);
}

absl::StatusOr<absl::optional<CertificateFacts>> PeerCertificate(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> pem = context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (pem.empty()) return absl::optional<CertificateFacts>();
  TERSE_ASSIGN_OR_RETURN(CertificateFacts facts, ReadCertificate(absl::string_view(pem[0].data(), pem[0].size())));
  return absl::make_optional(std::move(facts));
}

}  // namespace terse
