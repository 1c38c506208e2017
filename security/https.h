// Mutual TLS for an HTTPS server over a live TLS folder. OpenSSL stays in the source file.
#ifndef TERSE_SECURITY_HTTPS_H_
#define TERSE_SECURITY_HTTPS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "security/live_tls_directory.h"

// OpenSSL's SSL_CTX and SSL, which others' headers name.
struct ssl_ctx_st;
struct ssl_st;

namespace terse {

// Makes `context` that of a server: TLS 1.3, with what `files` holds when a handshake begins, and a certificate of
// the fleet's authority wanted of every peer. Says nothing about roles and revocations, which are looked up for every
// request (PeerPem). `files` must outlive the context. INTERNAL when OpenSSL refuses.
absl::Status ServeMutualTls(const LiveTlsDirectory* files, ssl_ctx_st* context);

// The certificate that the peer of a connection has shown. UNAUTHENTICATED when there is none.
absl::StatusOr<std::string> PeerPem(const ssl_st* connection);

}  // namespace terse

#endif  // TERSE_SECURITY_HTTPS_H_
