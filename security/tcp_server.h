// A gRPC server on TCP whose connections are bounded (net/acceptor.h).
#ifndef TERSE_SECURITY_TCP_SERVER_H_
#define TERSE_SECURITY_TCP_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "net/acceptor.h"
#include "security/tls_connections.h"

namespace terse {

struct TcpServer {
  std::unique_ptr<grpc::Server> server;
  std::string address;                 // with the port that was chosen
  std::unique_ptr<Acceptor> acceptor;  // goes before the server is shut down
};

// The time that a connection may last without doing anything.
struct ConnectionPatience {
  absl::Duration handshake;  // of TLS and HTTP/2
  absl::Duration idle;       // without a call
};

// Serves what is registered with `builder`, to which it adds a port and `patience`. `connections`, which may be
// nullptr, watches the handshakes. UNAVAILABLE with the reason when nobody can listen there; INVALID_ARGUMENT when the
// address is none; INTERNAL when gRPC does not start.
absl::StatusOr<TcpServer> ServeTcp(const Acceptor::Options& options, const ConnectionPatience& patience,
                                   std::shared_ptr<grpc::ServerCredentials> credentials,
                                   std::shared_ptr<TlsConnections> connections, grpc::ServerBuilder* builder);

// Sets `patience` for all connections of a server, those of Unix sockets too.
void SetPatience(const ConnectionPatience& patience, grpc::ServerBuilder* builder);

}  // namespace terse

#endif  // TERSE_SECURITY_TCP_SERVER_H_
