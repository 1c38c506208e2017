#include "security/https.h"

#include <openssl/ssl.h>

#include "core/status.h"
#include "security/openssl_types.h"

namespace terse {
namespace {

using StorePtr = std::unique_ptr<X509_STORE, OpensslFree<X509_STORE_free>>;

absl::Status UseFiles(const TlsDirectory& files, SSL* connection) {
  TERSE_ASSIGN_OR_RETURN(const CertificatePtr own, ParseCertificate(files.certificate_pem, kCertificateFile));
  TERSE_ASSIGN_OR_RETURN(const CertificatePtr authority, ParseCertificate(files.authority_pem, kAuthorityFile));
  TERSE_ASSIGN_OR_RETURN(const KeyPtr key, ParseKey(files.key_pem));
  const StorePtr trusted(X509_STORE_new());
  // The list of authorities lets a browser offer the right one of its certificates.
  const bool used = trusted != nullptr && X509_STORE_add_cert(trusted.get(), authority.get()) == 1 &&
                    SSL_use_certificate(connection, own.get()) == 1 && SSL_use_PrivateKey(connection, key.get()) == 1 &&
                    SSL_set1_verify_cert_store(connection, trusted.get()) == 1 &&
                    SSL_add_client_CA(connection, authority.get()) == 1;
  return used ? absl::OkStatus() : OpensslError("using the TLS folder's files");
}

// Called when a peer's first message has been read. 0 ends the handshake.
int BeginHandshake(SSL* connection, void* files) {
  return UseFiles(static_cast<const LiveTlsDirectory*>(files)->Files(), connection).ok() ? 1 : 0;
}

}  // namespace

absl::Status ServeMutualTls(const LiveTlsDirectory* files, ssl_ctx_st* context) {
  if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1) return OpensslError("asking for TLS 1.3");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Every connection shows its certificate anew.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (SSL_CTX_set_num_tickets(context, 0) != 1) return OpensslError("turning session tickets off");
  SSL_CTX_set_cert_cb(context, BeginHandshake, const_cast<LiveTlsDirectory*>(files));
  return absl::OkStatus();
}

absl::StatusOr<std::string> PeerPem(const ssl_st* connection) {
  const CertificatePtr certificate(SSL_get1_peer_certificate(connection));
  if (certificate == nullptr) return absl::UnauthenticatedError("the connection has no certificate");
  return ToPem(*certificate);
}

}  // namespace terse
