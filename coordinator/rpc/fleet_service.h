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
#include "grpcpp/grpcpp.h"
#include "terse/v1/fleet.grpc.pb.h"

namespace terse {

// Thread-safe. The registry must outlive the gRPC server that this is registered with.
class FleetService : public v1::Fleet::CallbackService {
 public:
  // `gatekeeper` is nullptr where clients come without certificates. A session that leaves its messages unread for
  // `unread_timeout` is ended.
  FleetService(const RunRegistry* runs, std::shared_ptr<Gatekeeper> gatekeeper, absl::Duration unread_timeout)
      : runs_(runs), gatekeeper_(std::move(gatekeeper)), unread_timeout_(unread_timeout) {}

  grpc::ServerBidiReactor<v1::ClientMessage, v1::ServerMessages>* Session(
      grpc::CallbackServerContext* context) override;
  grpc::ServerWriteReactor<v1::FileChunk>* DownloadCheckpoint(grpc::CallbackServerContext* context,
                                                              const v1::CheckpointRequest* request) override;
  grpc::ServerWriteReactor<v1::FileChunk>* DownloadModule(grpc::CallbackServerContext* context,
                                                          const v1::ModuleRequest* request) override;

 private:
  const RunRegistry* const runs_;
  const std::shared_ptr<Gatekeeper> gatekeeper_;
  const absl::Duration unread_timeout_;
  std::atomic<SessionId> next_session_{1};
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_FLEET_SERVICE_H_
