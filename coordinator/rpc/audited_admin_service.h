// The admin service as it is served: what changes something or gives the model away is in the audit log.
#ifndef TERSE_COORDINATOR_RPC_AUDITED_ADMIN_SERVICE_H_
#define TERSE_COORDINATOR_RPC_AUDITED_ADMIN_SERVICE_H_

#include <functional>
#include <string>
#include <utility>

#include "coordinator/rpc/admin_service.h"
#include "coordinator/rpc/audit_trail.h"
#include "coordinator/web/operator_desk.h"

namespace terse {

// Thread-safe. A method is written down before it begins and after it has ended (AuditTrail::Carry); those that only
// look are not. The trail must outlive the gRPC server that this is registered with.
class AuditedAdminService : public AdminService, public OperatorDesk {
 public:
  AuditedAdminService(RunRegistry* runs, ProcessFacts process, std::function<void()> shut_down, ModelPolicy models,
                      AuditTrail* audit)
      : AdminService(runs, std::move(process), std::move(shut_down), std::move(models)), audit_(audit) {}

  grpc::Status DeleteRun(grpc::ServerContext* context, const v1::DeleteRunRequest* request,
                         v1::DeleteRunReply* reply) override;
  grpc::Status Stop(grpc::ServerContext* context, const v1::StopRequest* request, v1::StopReply* reply) override;
  grpc::Status Pause(grpc::ServerContext* context, const v1::PauseRequest* request, v1::StateReply* reply) override;
  grpc::Status Resume(grpc::ServerContext* context, const v1::ResumeRequest* request, v1::StateReply* reply) override;
  grpc::Status AbortRound(grpc::ServerContext* context, const v1::AbortRoundRequest* request,
                          v1::AbortRoundReply* reply) override;
  grpc::Status SetAside(grpc::ServerContext* context, const v1::SetAsideRequest* request,
                        v1::SetAsideReply* reply) override;
  grpc::Status Backup(grpc::ServerContext* context, const v1::BackupRequest* request,
                      grpc::ServerWriter<v1::BackupChunk>* writer) override;
  grpc::Status Export(grpc::ServerContext* context, const v1::ExportRequest* request,
                      grpc::ServerWriter<v1::ExportChunk>* writer) override;
  grpc::Status PauseFor(const AuditedCaller& caller, const v1::PauseRequest& request, v1::StateReply* reply) override;
  grpc::Status ResumeFor(const AuditedCaller& caller, const v1::ResumeRequest& request, v1::StateReply* reply) override;
  grpc::Status AbortRoundFor(const AuditedCaller& caller, const v1::AbortRoundRequest& request,
                             v1::AbortRoundReply* reply) override;
  grpc::Status SetAsideFor(const AuditedCaller& caller, const v1::SetAsideRequest& request,
                           v1::SetAsideReply* reply) override;
  grpc::Status ExportFor(const AuditedCaller& caller, const v1::ExportRequest& request,
                         absl::FunctionRef<bool(const v1::ExportChunk&)> take) override;
  grpc::Status ListAudit(grpc::ServerContext*, const v1::AuditRequest* request, v1::AuditReply* reply) override;

 protected:
  grpc::Status MakeRun(grpc::ServerContext* context, const v1::RunConfig& config, const std::string& module,
                       bool paused, v1::CreateRunReply* reply) override;

 private:
  AuditTrail* const audit_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_AUDITED_ADMIN_SERVICE_H_
