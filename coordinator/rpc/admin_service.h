// The gRPC edge towards operators: terse.v1.Admin, on an address of its own. Every answer comes from the run store, so
// it agrees with the database to the byte.
#ifndef TERSE_COORDINATOR_RPC_ADMIN_SERVICE_H_
#define TERSE_COORDINATOR_RPC_ADMIN_SERVICE_H_

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "coordinator/rpc/admin_reply.h"
#include "coordinator/rpc/model_policy.h"
#include "coordinator/rpc/run_registry.h"
#include "grpcpp/grpcpp.h"
#include "net/peer_places.h"
#include "terse/v1/admin.grpc.pb.h"

namespace terse {

// Calls that last (Watch, CreateRun, Backup, Export), each of which holds a thread: so many at a time, and so many of
// them by one caller, by its certificate or else its address. A further call is RESOURCE_EXHAUSTED.
inline constexpr int kAdminStreams = 64;
inline constexpr int kAdminStreamsOfOne = 16;

// Thread-safe; a call may block its thread (operators are few). Statuses are those that admin.proto names.
class AdminService : public v1::Admin::Service {
 public:
  // `shut_down` ends the process, soon. `models` says whose TorchScript modules are taken. The registry must outlive
  // the gRPC server that this is registered with.
  AdminService(RunRegistry* runs, ProcessFacts process, std::function<void()> shut_down, ModelPolicy models = {})
      : runs_(runs), process_(std::move(process)), shut_down_(std::move(shut_down)), models_(std::move(models)) {}
  // Ends every Watch, so that the server can shut down.
  void Close() { closing_.store(true); }

  grpc::Status CreateRun(grpc::ServerContext*, grpc::ServerReader<v1::CreateRunRequest>* reader,
                         v1::CreateRunReply* reply) override;
  grpc::Status ListRuns(grpc::ServerContext*, const v1::RunsRequest*, v1::RunsReply* reply) override;
  grpc::Status GetStatus(grpc::ServerContext*, const v1::StatusRequest* request, v1::Status* reply) override;
  grpc::Status ListRounds(grpc::ServerContext*, const v1::RoundsRequest* request, v1::RoundsReply* reply) override;
  grpc::Status ListClients(grpc::ServerContext*, const v1::ClientsRequest* request, v1::ClientsReply* reply) override;
  grpc::Status ListMetrics(grpc::ServerContext*, const v1::MetricsRequest* request, v1::MetricsReply* reply) override;
  grpc::Status ListLedger(grpc::ServerContext*, const v1::LedgerRequest* request, v1::LedgerReply* reply) override;
  grpc::Status ListTraces(grpc::ServerContext*, const v1::TracesRequest* request, v1::TracesReply* reply) override;
  grpc::Status ListEvents(grpc::ServerContext*, const v1::EventsRequest* request, v1::EventsReply* reply) override;
  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::Round>* writer) override;
  grpc::Status DeleteRun(grpc::ServerContext*, const v1::DeleteRunRequest* request, v1::DeleteRunReply* reply) override;
  grpc::Status Stop(grpc::ServerContext*, const v1::StopRequest* request, v1::StopReply* reply) override;
  grpc::Status Pause(grpc::ServerContext*, const v1::PauseRequest* request, v1::StateReply* reply) override;
  grpc::Status Resume(grpc::ServerContext*, const v1::ResumeRequest* request, v1::StateReply* reply) override;
  grpc::Status AbortRound(grpc::ServerContext*, const v1::AbortRoundRequest* request,
                          v1::AbortRoundReply* reply) override;
  grpc::Status SetAside(grpc::ServerContext*, const v1::SetAsideRequest* request, v1::SetAsideReply* reply) override;
  grpc::Status Backup(grpc::ServerContext*, const v1::BackupRequest* request,
                      grpc::ServerWriter<v1::BackupChunk>* writer) override;
  grpc::Status Export(grpc::ServerContext*, const v1::ExportRequest* request,
                      grpc::ServerWriter<v1::ExportChunk>* writer) override;

 protected:
  // Does the work of CreateRun, once the whole request has arrived.
  virtual grpc::Status MakeRun(grpc::ServerContext* context, const v1::RunConfig& config, const std::string& module,
                               bool paused, v1::CreateRunReply* reply);
  // Does the work of Export. `streamer` is the name under which the caller's calls that last are counted.
  grpc::Status ExportTo(const std::string& streamer, const v1::ExportRequest& request,
                        absl::FunctionRef<bool(const v1::ExportChunk&)> take);

 private:
  // Runs a call that lasts, when there is a place for it.
  grpc::Status Stream(const std::string& streamer, absl::FunctionRef<grpc::Status()> act);
  grpc::Status WatchUntilItEnds(grpc::ServerContext* context, const v1::WatchRequest& request,
                                grpc::ServerWriter<v1::Round>* writer) const;
  // Finds the run and calls `use` while its store is open.
  grpc::Status With(const std::string& run, absl::FunctionRef<absl::Status(const RunHost::Live&)> use) const;
  // Posts an event to a run that goes on, waits until it was handled and reports the run's state.
  grpc::Status Command(const std::string& run, Event event, v1::StateReply* reply) const;

  RunRegistry* const runs_;
  const ProcessFacts process_;
  const std::function<void()> shut_down_;
  const ModelPolicy models_;
  std::atomic<bool> closing_{false};
  PeerPlaces streams_{kAdminStreams, kAdminStreamsOfOne};
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_ADMIN_SERVICE_H_
