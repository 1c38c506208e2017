// The gRPC edge towards operators: terse.v1.Admin, on an address of its own. Every answer comes from the run store, so
// it agrees with the database to the byte.
#ifndef TERSE_COORDINATOR_RPC_ADMIN_SERVICE_H_
#define TERSE_COORDINATOR_RPC_ADMIN_SERVICE_H_

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/engine.h"
#include "coordinator/event_loop.h"
#include "grpcpp/grpcpp.h"
#include "storage/run_store.h"
#include "terse/v1/admin.grpc.pb.h"

namespace terse {

// Makes the bytes of a model file from the head's weights.
using ModelExporter = std::function<absl::StatusOr<std::string>(v1::ExportRequest::Format, absl::Span<const float>)>;

// Thread-safe; a call may block its thread (operators are few).
class AdminService : public v1::Admin::Service {
 public:
  struct Options {
    const Engine* engine = nullptr;  // View and, inside EventLoop::Call, weights
    EventLoop* loop = nullptr;
    RunStore* store = nullptr;
    v1::RunConfig config;
    ModelExporter exporter;
    std::function<void()> shut_down;  // ends the process, soon
  };

  explicit AdminService(Options options) : options_(std::move(options)) {}
  // Ends every Watch, so that the server can shut down.
  void Close() { closing_.store(true); }

  grpc::Status GetStatus(grpc::ServerContext*, const v1::StatusRequest*, v1::Status* reply) override;
  grpc::Status ListRounds(grpc::ServerContext*, const v1::RoundsRequest* request, v1::RoundsReply* reply) override;
  grpc::Status ListClients(grpc::ServerContext*, const v1::ClientsRequest*, v1::ClientsReply* reply) override;
  grpc::Status ListLedger(grpc::ServerContext*, const v1::LedgerRequest* request, v1::LedgerReply* reply) override;
  grpc::Status ListEvents(grpc::ServerContext*, const v1::EventsRequest* request, v1::EventsReply* reply) override;
  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::Round>* writer) override;
  grpc::Status Stop(grpc::ServerContext*, const v1::StopRequest* request, v1::StopReply* reply) override;
  grpc::Status Export(grpc::ServerContext*, const v1::ExportRequest* request,
                      grpc::ServerWriter<v1::ExportChunk>* writer) override;

 private:
  absl::StatusOr<RunRecord> Run() const;
  // Whether everything that will be known about a settled round is known.
  bool IsComplete(const RoundRecord& round, bool run_ended) const;

  const Options options_;
  std::atomic<bool> closing_{false};
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_ADMIN_SERVICE_H_
