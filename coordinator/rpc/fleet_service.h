// The gRPC edge towards clients: terse.v1.Fleet on the callback API. Every session is a reactor that is also the
// engine's ClientLink; messages are parsed and validated here, outside the engine's thread.
#ifndef TERSE_COORDINATOR_RPC_FLEET_SERVICE_H_
#define TERSE_COORDINATOR_RPC_FLEET_SERVICE_H_

#include <atomic>
#include <cstdint>

#include "coordinator/engine.h"
#include "coordinator/event_loop.h"
#include "grpcpp/grpcpp.h"
#include "storage/run_store.h"
#include "terse/v1/fleet.grpc.pb.h"

namespace terse {

// Thread-safe. Everything it is given must outlive the gRPC server that it is registered with.
class FleetService : public v1::Fleet::CallbackService {
 public:
  struct Options {
    const Engine* engine = nullptr;  // Validate only
    EventLoop* loop = nullptr;
    RunStore* store = nullptr;
    v1::RunConfig config;
    Id128 lineage;
    int64_t max_update_bytes = 0;
    // A session whose unsent messages exceed this is cancelled: the client does not read.
    int64_t max_queued_bytes = 0;
  };

  explicit FleetService(Options options) : options_(std::move(options)) {}

  grpc::ServerBidiReactor<v1::ClientMessage, v1::ServerMessages>* Session(
      grpc::CallbackServerContext* context) override;
  grpc::ServerWriteReactor<v1::CheckpointChunk>* DownloadCheckpoint(grpc::CallbackServerContext* context,
                                                                    const v1::CheckpointRequest* request) override;

 private:
  const Options options_;
  std::atomic<SessionId> next_session_{1};
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_FLEET_SERVICE_H_
