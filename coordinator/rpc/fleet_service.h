// The gRPC edge towards clients: terse.v1.Fleet on the callback API. Every session is a reactor that is also the
// engine's ClientLink; messages are parsed and validated here, outside the engine's thread.
#ifndef TERSE_COORDINATOR_RPC_FLEET_SERVICE_H_
#define TERSE_COORDINATOR_RPC_FLEET_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "coordinator/rpc/gatekeeper.h"
#include "coordinator/rpc/run_registry.h"
#include "coordinator/rpc/write_budget.h"
#include "core/wire_meter.h"
#include "grpcpp/grpcpp.h"
#include "terse/v1/fleet.grpc.pb.h"

namespace terse {

// For all calls of clients. What the pointers name must outlive the gRPC server.
struct FleetEdge {
  const RunRegistry* runs;
  std::shared_ptr<Gatekeeper> gatekeeper;  // null where clients come without certificates
  const AcceptedSockets* accepted;         // the server's TCP connections
  absl::Duration unread_timeout;           // who leaves messages unread for so long is ended
  WriteBudget* writes;                     // of the process
};

// Thread-safe.
class FleetService : public v1::Fleet::CallbackService {
 public:
  explicit FleetService(FleetEdge edge) : edge_(std::move(edge)) {}

  grpc::ServerBidiReactor<v1::ClientMessage, v1::ServerMessages>* Session(
      grpc::CallbackServerContext* context) override;
  grpc::ServerWriteReactor<v1::FileChunk>* DownloadCheckpoint(grpc::CallbackServerContext* context,
                                                              const v1::CheckpointRequest* request) override;
  grpc::ServerWriteReactor<v1::FileChunk>* DownloadModule(grpc::CallbackServerContext* context,
                                                          const v1::ModuleRequest* request) override;

 private:
  const FleetEdge edge_;
  std::atomic<SessionId> next_session_{1};
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_FLEET_SERVICE_H_
