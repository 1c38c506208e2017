#include "security/tcp_server.h"

#include <utility>

#include "core/status.h"
#include "net/peer.h"

namespace terse {

void SetPatience(const ConnectionPatience& patience, grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                              static_cast<int>(absl::ToInt64Milliseconds(patience.idle)));
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                              static_cast<int>(absl::ToInt64Milliseconds(patience.handshake)));
}

absl::StatusOr<TcpServer> ServeTcp(const Acceptor::Options& options, const ConnectionPatience& patience,
                                   std::shared_ptr<grpc::ServerCredentials> credentials,
                                   std::shared_ptr<TlsConnections> connections, grpc::ServerBuilder* builder) {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<Acceptor> acceptor, Acceptor::Listen(options));
  SetPatience(patience, builder);
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  const std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor> door =
      builder->experimental().AddExternalConnectionAcceptor(Type::FROM_FD, std::move(credentials));
  TcpServer server{builder->BuildAndStart(), acceptor->address(), std::move(acceptor)};
  if (server.server == nullptr) return absl::InternalError("gRPC does not start a server");
  server.acceptor->Start([door, connections = std::move(connections)](int listening, int connected) {
    // gRPC makes the TLS object of the connection before it returns.
    const TlsConnections::Beginning begins(connections, HostOfSocket(connected));
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = listening;
    connection.fd = connected;
    door->HandleNewConnection(&connection);
  });
  return server;
}

}  // namespace terse
