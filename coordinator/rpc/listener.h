// A gRPC server on one address.
#ifndef TERSE_COORDINATOR_RPC_LISTENER_H_
#define TERSE_COORDINATOR_RPC_LISTENER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/rpc/gatekeeper.h"
#include "grpcpp/grpcpp.h"
#include "net/acceptor.h"
#include "security/tcp_server.h"
#include "security/transport.h"

namespace terse {

// On a Unix socket there is no acceptor.
using Listener = TcpServer;

struct ListenOptions {
  std::string address;        // "host:port", where port 0 takes a free one, or "unix:/path"
  std::string option;         // of the command line, for errors
  Acceptor::Bounds bounds;    // of TCP connections
  std::string bounds_option;  // of the command line, for the log; empty: there is none
  double keepalive_seconds = 0;
  bool insecure = false;                                // cleartext may reach other machines
  std::shared_ptr<Gatekeeper> gatekeeper;               // of connections with TLS; without TLS there is none
  std::shared_ptr<AcceptedSockets> accepted = nullptr;  // learns of TCP connections; null: nobody meters them
  grpc::CallbackGenericService* generic = nullptr;      // answers calls that no service has; null: they are unknown
};

// Serves `service`, which must outlive the listener and may be null. A Unix socket is made for its owner only; one that
// a process left behind is replaced. UNAVAILABLE when the address cannot be listened on or is in use; statuses of
// ListenWith and ServeTcp.
absl::StatusOr<Listener> Listen(const ListenOptions& options, grpc::Service* service);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_LISTENER_H_
