#include "coordinator/rpc/admin_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "coordinator/rpc/audit_trail.h"
#include "coordinator/rpc/backup_stream.h"
#include "core/status.h"
#include "net/peer.h"
#include "proto/grpc_status.h"
#include "proto/session_wire.h"
#include "storage/module_file.h"

namespace terse {
namespace {

std::string ReasonOf(const std::string& given) { return given.empty() ? "by an operator" : given; }

absl::Status MustGoOn(const RunRecord& record) {
  if (!HasEnded(record.state)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("run '", record.name, "' is over: ", RunStateName(record.state)));
}

absl::StatusOr<int64_t> ClientNamed(const std::string& name, RunStore* store) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<ClientRecord> clients, store->Clients());
  const auto it =
      std::find_if(clients.begin(), clients.end(), [&](const ClientRecord& client) { return client.name == name; });
  if (it != clients.end()) return it->id;
  return absl::NotFoundError(
      absl::StrCat("no client '", name, "' ever checked in; `tersectl clients` lists those that did"));
}

// The name under which a caller's streams are counted: in cleartext, where nobody has a name, that of its address.
std::string StreamerOf(const grpc::ServerContext& context) {
  const std::string caller = CallerOf(context).who;
  return caller == kCleartextCaller ? PeerOfText(context.peer()) : caller;
}

}  // namespace

grpc::Status AdminService::Stream(const std::string& streamer, absl::FunctionRef<grpc::Status()> act) {
  const std::unique_ptr<PeerPlaces::Place> place = streams_.Take(streamer);
  if (place != nullptr) return act();
  return ToGrpc(absl::ResourceExhaustedError(
      absl::StrCat("too many calls that last (watch, run create, backup, export) are under way: at most ",
                   streams_.most(), " at a time, ", streams_.most_of_one(), " of one caller; end one of yours first")));
}

grpc::Status AdminService::With(const std::string& run,
                                absl::FunctionRef<absl::Status(const RunHost::Live&)> use) const {
  const absl::StatusOr<RunHost*> host = runs_->Find(run);
  return ToGrpc(host.ok() ? (*host)->Use(use) : host.status());
}

grpc::Status AdminService::CreateRun(grpc::ServerContext* context, grpc::ServerReader<v1::CreateRunRequest>* reader,
                                     v1::CreateRunReply* reply) {
  return Stream(StreamerOf(*context), [&] {
    v1::RunConfig config;
    std::string module;
    bool paused = false;
    for (v1::CreateRunRequest request; reader->Read(&request);) {
      if (request.has_config()) {
        config = request.config();
        paused = request.paused();
      }
      if (module.size() + request.module().size() > static_cast<size_t>(kMaxModuleBytes)) {
        return ToGrpc(absl::ResourceExhaustedError(
            absl::StrCat("the model's file is larger than ", kMaxModuleBytes, " bytes; make the model smaller")));
      }
      module.append(request.module());
    }
    return MakeRun(context, config, module, paused, reply);
  });
}

grpc::Status AdminService::MakeRun(grpc::ServerContext* context, const v1::RunConfig& config, const std::string& module,
                                   bool paused, v1::CreateRunReply* reply) {
  // The file of an external model is data, and no code.
  const bool is_code = !module.empty() && config.model().name() != kExternalModel;
  const absl::Status allowed = is_code ? models_.Check(CallerOf(*context).who) : absl::OkStatus();
  if (!allowed.ok()) return ToGrpc(allowed);
  const absl::StatusOr<RunHost*> run =
      runs_->Create(config, module, paused, [context] { return context->IsCancelled(); });
  if (!run.ok()) return ToGrpc(run.status());
  reply->set_run((*run)->name());
  reply->set_state(std::string(RunStateName(paused ? RunState::kPaused : RunState::kActive)));
  reply->set_elements(static_cast<uint64_t>((*run)->codec().layout().size()));
  return grpc::Status::OK;
}

grpc::Status AdminService::DeleteRun(grpc::ServerContext*, const v1::DeleteRunRequest* request,
                                     v1::DeleteRunReply* reply) {
  const absl::StatusOr<uint64_t> bytes = runs_->Delete(request->run(), request->force());
  if (bytes.ok()) reply->set_bytes(*bytes);
  return ToGrpc(bytes.status());
}

grpc::Status AdminService::Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                                 grpc::ServerWriter<v1::Round>* writer) {
  return Stream(StreamerOf(*context), [&] { return WatchUntilItEnds(context, *request, writer); });
}

grpc::Status AdminService::Command(const std::string& run, Event event, v1::StateReply* reply) const {
  return With(run, [&](const RunHost::Live& live) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(absl::optional<RunRecord> record, live.store->Run());
    TERSE_RETURN_IF_ERROR(MustGoOn(*record));
    live.loop->Post(std::move(event));
    TERSE_RETURN_IF_ERROR(live.loop->Call([] {}));
    TERSE_ASSIGN_OR_RETURN(record, live.store->Run());
    reply->set_state(std::string(RunStateName(record->state)));
    return absl::OkStatus();
  });
}

grpc::Status AdminService::Stop(grpc::ServerContext*, const v1::StopRequest* request, v1::StopReply* reply) {
  if (request->shutdown()) {
    reply->set_state("shutting down");
    shut_down_();
    return grpc::Status::OK;
  }
  return With(request->run(), [&](const RunHost::Live& live) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> record, live.store->Run());
    if (!HasEnded(record->state)) live.loop->Post(StopRequested{});
    reply->set_state(HasEnded(record->state) ? std::string(RunStateName(record->state)) : "stopping");
    return absl::OkStatus();
  });
}

grpc::Status AdminService::Pause(grpc::ServerContext*, const v1::PauseRequest* request, v1::StateReply* reply) {
  return Command(request->run(), PauseRequested{ReasonOf(request->reason())}, reply);
}

grpc::Status AdminService::Resume(grpc::ServerContext*, const v1::ResumeRequest* request, v1::StateReply* reply) {
  return Command(request->run(), ResumeRequested{}, reply);
}

grpc::Status AdminService::AbortRound(grpc::ServerContext*, const v1::AbortRoundRequest* request,
                                      v1::AbortRoundReply* reply) {
  return With(request->run(), [&](const RunHost::Live& live) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundRecord> round, live.store->LastRound());
    if (!round.has_value() || round->state != RoundState::kOpen) {
      return absl::FailedPreconditionError("no round is open; `tersectl status` says what the run waits for");
    }
    live.loop->Post(AbortRequested{ReasonOf(request->reason())});
    reply->set_round(round->id);
    return live.loop->Call([] {});
  });
}

grpc::Status AdminService::SetAside(grpc::ServerContext*, const v1::SetAsideRequest* request,
                                    v1::SetAsideReply* reply) {
  constexpr double kMaxSeconds = 1e9;
  return With(request->run(), [&](const RunHost::Live& live) -> absl::Status {
    if (!(request->seconds() >= 0 && request->seconds() <= kMaxSeconds)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a client is set aside for 0 to ", kMaxSeconds, " seconds, not ", request->seconds()));
    }
    TERSE_ASSIGN_OR_RETURN(const int64_t client, ClientNamed(request->client(), live.store.get()));
    SetAsideRequested event{client, 0, ReasonOf(request->reason())};
    if (request->seconds() > 0) event.until_us = absl::ToUnixMicros(absl::Now() + absl::Seconds(request->seconds()));
    live.loop->Post(std::move(event));
    TERSE_RETURN_IF_ERROR(live.loop->Call([] {}));
    TERSE_ASSIGN_OR_RETURN(const ClientRecord record, live.store->GetClient(client));
    reply->set_until_us(record.set_aside_until_us);
    return absl::OkStatus();
  });
}

grpc::Status AdminService::Backup(grpc::ServerContext* context, const v1::BackupRequest* request,
                                  grpc::ServerWriter<v1::BackupChunk>* writer) {
  return Stream(StreamerOf(*context), [&] {
    const absl::StatusOr<RunHost*> run = runs_->Find(request->run());
    if (!run.ok()) return ToGrpc(run.status());
    return ToGrpc(StreamBackup(**run, [writer](const v1::BackupChunk& chunk) { return writer->Write(chunk); }));
  });
}

grpc::Status AdminService::Export(grpc::ServerContext* context, const v1::ExportRequest* request,
                                  grpc::ServerWriter<v1::ExportChunk>* writer) {
  return ExportTo(StreamerOf(*context), *request,
                  [writer](const v1::ExportChunk& chunk) { return writer->Write(chunk); });
}

grpc::Status AdminService::ExportTo(const std::string& streamer, const v1::ExportRequest& request,
                                    absl::FunctionRef<bool(const v1::ExportChunk&)> take) {
  return Stream(streamer, [&]() -> grpc::Status {
    const absl::StatusOr<RunHost*> run = runs_->Find(request.run());
    if (!run.ok()) return ToGrpc(run.status());
    const absl::StatusOr<ExportedModel> model = (*run)->Export(request.format());
    if (!model.ok()) return ToGrpc(model.status());
    for (size_t at = 0; at < model->bytes.size(); at += kChunkBytes) {
      v1::ExportChunk chunk;
      chunk.set_total(model->bytes.size());
      chunk.set_data(model->bytes.substr(at, kChunkBytes));
      chunk.set_version(model->version);
      if (!take(chunk)) return grpc::Status::CANCELLED;
    }
    return grpc::Status::OK;
  });
}

}  // namespace terse
