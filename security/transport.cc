#include "security/transport.h"

#include <arpa/inet.h>

#include <cstdlib>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/percent_code.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr char kUnixScheme[] = "unix:";

// gRPC 1.51 asks for TLS 1.2 or newer and has no option for more; only its list of ciphers is open. This one has none
// that TLS 1.2 could agree on with our keys, which are ECDSA. Read by gRPC once, before its first TLS connection.
void AllowOnlyTls13() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    setenv("GRPC_SSL_CIPHER_SUITES",
           "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:ECDHE-RSA-AES128-GCM-SHA256",
           /*overwrite=*/1);
  });
}

}  // namespace

std::string UnixSocketAddress(absl::string_view path) {
  std::string address = kUnixScheme;
  for (const char c : path) {
    const bool is_plain = absl::ascii_isalnum(c) || absl::string_view("/._-~").find(c) != absl::string_view::npos;
    if (is_plain) {
      address.push_back(c);
    } else {
      absl::StrAppend(&address, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return address;
}

absl::StatusOr<std::string> UnixSocketPath(const std::string& address) {
  const auto bad = [&address] {
    return absl::InvalidArgumentError(absl::StrCat("'", address,
                                                   "' is no address of a Unix socket: unix:PATH, with %20 "
                                                   "for a space and %25 for a %"));
  };
  absl::string_view rest = address;
  if (!absl::ConsumePrefix(&rest, kUnixScheme)) return bad();
  absl::optional<std::string> path = PercentDecode(rest);
  if (!path.has_value()) return bad();
  return *std::move(path);
}

bool IsLocalAddress(const std::string& address) {
  if (IsUnixSocket(address)) return true;
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return false;
  const std::string& host = parsed->host;
  in_addr ipv4 = {};
  const bool is_loopback = inet_pton(AF_INET, host.c_str(), &ipv4) == 1 && (ntohl(ipv4.s_addr) >> 24) == IN_LOOPBACKNET;
  return host == "localhost" || is_loopback || host == "::1";
}

bool IsCleartext(const TransportOptions& options, const std::string& address) {
  return IsUnixSocket(address) || options.tls_directory.empty();
}

absl::Status CheckCleartext(bool insecure, const std::string& address) {
  if (insecure || IsLocalAddress(address)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      address,
      " is reached over a network, where cleartext can be read and forged: give --tls DIR (docs/SECURITY.md "
      "says how to make certificates), or --insecure if something else protects that network"));
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenWith(const std::string& address, bool insecure,
                                                                    std::shared_ptr<const LiveTlsDirectory> files,
                                                                    CallCheck check) {
  if (IsUnixSocket(address) || files == nullptr) {
    TERSE_RETURN_IF_ERROR(CheckCleartext(insecure, address));
    return grpc::InsecureServerCredentials();
  }
  AllowOnlyTls13();
  return MakeLiveServerCredentials(std::move(files), std::move(check));
}

absl::Status CheckConnectWith(const TransportOptions& options, const std::string& address,
                              const std::vector<Role>& roles) {
  if (IsCleartext(options, address)) return CheckCleartext(options.insecure, address);
  return ReadTlsDirectory(options.tls_directory, roles).status();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ConnectWith(const TransportOptions& options,
                                                                      const std::string& address,
                                                                      const std::vector<Role>& roles,
                                                                      grpc::ChannelArguments* arguments) {
  // gRPC would take the port modulo 2^16.
  if (!IsUnixSocket(address)) TERSE_RETURN_IF_ERROR(CheckDialAddress(address));
  if (IsCleartext(options, address)) {
    TERSE_RETURN_IF_ERROR(CheckCleartext(options.insecure, address));
    // A proxy of the environment would be another machine.
    arguments->SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    return grpc::InsecureChannelCredentials();
  }
  TERSE_ASSIGN_OR_RETURN(const TlsDirectory files, OpenTlsDirectory(options.tls_directory, roles));
  AllowOnlyTls13();
  if (!options.server_name.empty()) arguments->SetSslTargetNameOverride(options.server_name);
  return grpc::SslCredentials({files.authority_pem, files.key_pem, files.certificate_pem});
}

std::shared_ptr<grpc::ServerCredentials> ListenForGuests(const std::string& certificate_pem,
                                                         const std::string& key_pem) {
  AllowOnlyTls13();
  grpc::SslServerCredentialsOptions options(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  options.pem_key_cert_pairs.push_back({key_pem, certificate_pem});
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> ConnectAsGuest(const std::string& authority_pem) {
  AllowOnlyTls13();
  return grpc::SslCredentials({authority_pem, "", ""});
}

absl::StatusOr<absl::optional<CertificateFacts>> PeerCertificate(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> pem = context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (pem.empty()) return absl::optional<CertificateFacts>();
  TERSE_ASSIGN_OR_RETURN(CertificateFacts facts, ReadCertificate(absl::string_view(pem[0].data(), pem[0].size())));
  return absl::make_optional(std::move(facts));
}

}  // namespace terse
