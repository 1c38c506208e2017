// An operator's commands as the dashboard asks for them. The admin service (coordinator/rpc/audited_admin_service.h)
// carries them out: the same code, checks and audit records as over gRPC.
#ifndef TERSE_COORDINATOR_WEB_OPERATOR_DESK_H_
#define TERSE_COORDINATOR_WEB_OPERATOR_DESK_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "grpcpp/support/status.h"
#include "terse/v1/admin.pb.h"

namespace terse {

// The one who asks, as the audit log names him (AuditRecord of terse/v1/admin.proto).
struct AuditedCaller {
  std::string who;
  std::string certificate;  // its serial number; empty without one
  std::string address;
};

// Thread-safe; a call may block its thread. Statuses are those that admin.proto names. Whether the caller may is
// decided before.
class OperatorDesk {
 public:
  virtual ~OperatorDesk() = default;

  // Each waits until the run's engine has handled the command, so as long as that does not answer; the reply then says
  // what became of it.
  virtual grpc::Status PauseFor(const AuditedCaller& caller, const v1::PauseRequest& request,
                                v1::StateReply* reply) = 0;
  virtual grpc::Status ResumeFor(const AuditedCaller& caller, const v1::ResumeRequest& request,
                                 v1::StateReply* reply) = 0;
  virtual grpc::Status AbortRoundFor(const AuditedCaller& caller, const v1::AbortRoundRequest& request,
                                     v1::AbortRoundReply* reply) = 0;
  virtual grpc::Status SetAsideFor(const AuditedCaller& caller, const v1::SetAsideRequest& request,
                                   v1::SetAsideReply* reply) = 0;
  // Passes the file on in pieces, until `take` returns false.
  virtual grpc::Status ExportFor(const AuditedCaller& caller, const v1::ExportRequest& request,
                                 absl::FunctionRef<bool(const v1::ExportChunk&)> take) = 0;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_WEB_OPERATOR_DESK_H_
