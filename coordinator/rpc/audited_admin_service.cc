#include "coordinator/rpc/audited_admin_service.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/grpc_status.h"

namespace terse {
namespace {

constexpr uint32_t kMaxRecords = 10'000;

std::string AsideText(const v1::SetAsideRequest& request) {
  if (request.seconds() == 0) return absl::StrCat("readmits ", request.client());
  return absl::StrCat(request.client(), " for ", request.seconds(), " s",
                      request.reason().empty() ? "" : absl::StrCat(": ", request.reason()));
}

AuditedAction ExportAction(const v1::ExportRequest& request) {
  return {"Export", request.run(), v1::ExportRequest::Format_Name(request.format())};
}

}  // namespace

grpc::Status AuditedAdminService::MakeRun(grpc::ServerContext* context, const v1::RunConfig& config,
                                          const std::string& module, bool paused, v1::CreateRunReply* reply) {
  std::vector<std::string> detail;
  if (paused) detail.push_back("paused");
  if (!config.model().hash().empty()) detail.push_back(absl::StrCat("TorchScript ", config.model().hash()));
  return audit_->Carry(CallerOf(*context), {"CreateRun", config.name(), absl::StrJoin(detail, ", ")},
                       [&] { return AdminService::MakeRun(context, config, module, paused, reply); });
}

grpc::Status AuditedAdminService::DeleteRun(grpc::ServerContext* context, const v1::DeleteRunRequest* request,
                                            v1::DeleteRunReply* reply) {
  return audit_->Carry(CallerOf(*context), {"DeleteRun", request->run(), request->force() ? "by force" : ""},
                       [&] { return AdminService::DeleteRun(context, request, reply); });
}

grpc::Status AuditedAdminService::Stop(grpc::ServerContext* context, const v1::StopRequest* request,
                                       v1::StopReply* reply) {
  return audit_->Carry(CallerOf(*context), {"Stop", request->run(), request->shutdown() ? "the coordinator" : ""},
                       [&] { return AdminService::Stop(context, request, reply); });
}

grpc::Status AuditedAdminService::Pause(grpc::ServerContext* context, const v1::PauseRequest* request,
                                        v1::StateReply* reply) {
  return PauseFor(CallerOf(*context), *request, reply);
}

grpc::Status AuditedAdminService::PauseFor(const AuditedCaller& caller, const v1::PauseRequest& request,
                                           v1::StateReply* reply) {
  return audit_->Carry(caller, {"Pause", request.run(), request.reason()},
                       [&] { return AdminService::Pause(nullptr, &request, reply); });
}

grpc::Status AuditedAdminService::Resume(grpc::ServerContext* context, const v1::ResumeRequest* request,
                                         v1::StateReply* reply) {
  return ResumeFor(CallerOf(*context), *request, reply);
}

grpc::Status AuditedAdminService::ResumeFor(const AuditedCaller& caller, const v1::ResumeRequest& request,
                                            v1::StateReply* reply) {
  return audit_->Carry(caller, {"Resume", request.run(), ""},
                       [&] { return AdminService::Resume(nullptr, &request, reply); });
}

grpc::Status AuditedAdminService::AbortRound(grpc::ServerContext* context, const v1::AbortRoundRequest* request,
                                             v1::AbortRoundReply* reply) {
  return AbortRoundFor(CallerOf(*context), *request, reply);
}

grpc::Status AuditedAdminService::AbortRoundFor(const AuditedCaller& caller, const v1::AbortRoundRequest& request,
                                                v1::AbortRoundReply* reply) {
  return audit_->Carry(caller, {"AbortRound", request.run(), request.reason()},
                       [&] { return AdminService::AbortRound(nullptr, &request, reply); });
}

grpc::Status AuditedAdminService::SetAside(grpc::ServerContext* context, const v1::SetAsideRequest* request,
                                           v1::SetAsideReply* reply) {
  return SetAsideFor(CallerOf(*context), *request, reply);
}

grpc::Status AuditedAdminService::SetAsideFor(const AuditedCaller& caller, const v1::SetAsideRequest& request,
                                              v1::SetAsideReply* reply) {
  return audit_->Carry(caller, {"SetAside", request.run(), AsideText(request)},
                       [&] { return AdminService::SetAside(nullptr, &request, reply); });
}

grpc::Status AuditedAdminService::Backup(grpc::ServerContext* context, const v1::BackupRequest* request,
                                         grpc::ServerWriter<v1::BackupChunk>* writer) {
  return audit_->Carry(CallerOf(*context), {"Backup", request->run(), ""},
                       [&] { return AdminService::Backup(context, request, writer); });
}

grpc::Status AuditedAdminService::Export(grpc::ServerContext* context, const v1::ExportRequest* request,
                                         grpc::ServerWriter<v1::ExportChunk>* writer) {
  return audit_->Carry(CallerOf(*context), ExportAction(*request),
                       [&] { return AdminService::Export(context, request, writer); });
}

grpc::Status AuditedAdminService::ExportFor(const AuditedCaller& caller, const v1::ExportRequest& request,
                                            absl::FunctionRef<bool(const v1::ExportChunk&)> take) {
  return audit_->Carry(caller, ExportAction(request), [&] { return ExportTo(caller.who, request, take); });
}

grpc::Status AuditedAdminService::ListAudit(grpc::ServerContext*, const v1::AuditRequest* request,
                                            v1::AuditReply* reply) {
  const uint32_t most = request->newest() == 0 ? kMaxRecords : std::min(request->newest(), kMaxRecords);
  const absl::StatusOr<std::vector<AuditRecord>> records = audit_->Newest(most);
  if (!records.ok()) return ToGrpc(records.status());
  for (const AuditRecord& record : *records) Fill(record, reply->add_records());
  return grpc::Status::OK;
}

}  // namespace terse
