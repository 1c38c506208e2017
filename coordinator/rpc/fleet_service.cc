#include "coordinator/rpc/fleet_service.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/rpc/metered_peer.h"
#include "coordinator/rpc/session_reactor.h"
#include "coordinator/rpc/write_watch.h"
#include "core/allow_list.h"
#include "core/status.h"
#include "proto/grpc_status.h"
#include "proto/session_wire.h"
#include "storage/module_file.h"

namespace terse {
namespace {

// A file to stream, open.
struct OpenFile {
  std::ifstream file;
  uint64_t offset = 0;
  uint64_t total = 0;
};

absl::StatusOr<OpenFile> OpenAt(const std::string& path, uint64_t offset, const std::string& what) {
  OpenFile open;
  open.file.open(path, std::ios::binary | std::ios::ate);
  if (!open.file) return absl::NotFoundError(absl::StrCat(what, " was just replaced"));
  open.total = static_cast<uint64_t>(open.file.tellg());
  if (offset >= open.total) {
    return absl::OutOfRangeError(absl::StrCat("offset ", offset, " is past the end at ", open.total));
  }
  open.file.seekg(static_cast<std::streamoff>(offset));
  open.offset = offset;
  return open;
}

// Checks the rule of a session for every other call: the client may join the run, by clients.allow, and has joined it.
absl::Status CheckMember(const RunHost& run, const std::string& client) {
  if (!IsAllowed(run.config().clients.allow, client)) {
    return absl::PermissionDeniedError(
        absl::StrCat("client '", client, "' is not among those that this run admits (clients.allow)"));
  }
  const absl::Status known =
      run.Use([&](const RunHost::Live& live) { return live.store->ClientNamed(client).status(); });
  if (!absl::IsNotFound(known)) return known;
  return absl::PermissionDeniedError(
      absl::StrCat("client '", client, "' has not joined this run; check in before you ask for its files"));
}

// The run for a client's call. UNAVAILABLE while it is not served: the client tries again. PERMISSION_DENIED for who is
// none of its clients.
absl::StatusOr<RunHost*> FindServed(const RunRegistry& runs, const MeteredPeer& peer, const std::string& lineage) {
  TERSE_ASSIGN_OR_RETURN(const Id128 id, Id128::FromBytes(lineage));
  RunHost* const run = runs.FindLineage(id);
  if (run == nullptr) return absl::NotFoundError("another run is served here");
  TERSE_RETURN_IF_ERROR(run->Loop().status());
  // In cleartext nobody is known.
  if (peer.name().has_value()) TERSE_RETURN_IF_ERROR(CheckMember(*run, *peer.name()));
  return run;
}

absl::StatusOr<OpenFile> OpenCheckpoint(const RunRegistry& runs, const MeteredPeer& peer,
                                        const v1::CheckpointRequest& request) {
  TERSE_ASSIGN_OR_RETURN(const RunHost* run, FindServed(runs, peer, request.lineage()));
  absl::StatusOr<OpenFile> open = absl::InternalError("unset");
  TERSE_RETURN_IF_ERROR(run->Use([&](const RunHost::Live& live) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const RunStore::CheckpointFile newest, live.store->NewestCheckpointFile());
    const std::string what = absl::StrCat("checkpoint ", request.version());
    if (static_cast<uint64_t>(newest.version) != request.version()) {
      return absl::NotFoundError(absl::StrCat(what, " was replaced by ", newest.version));
    }
    open = OpenAt(newest.path, request.offset(), what);
    return open.status();
  }));
  return open;
}

absl::StatusOr<OpenFile> OpenModule(const RunRegistry& runs, const MeteredPeer& peer,
                                    const v1::ModuleRequest& request) {
  TERSE_ASSIGN_OR_RETURN(const RunHost* run, FindServed(runs, peer, request.lineage()));
  if (run->config().model.name != kTorchScriptModel) {
    return absl::NotFoundError(absl::StrCat("run '", run->name(), "' trains a model of Terse's own"));
  }
  return OpenAt(absl::StrCat(run->directory(), "/", kModuleFile), request.offset(), "the module");
}

// Streams a file from an offset on. It stays readable when its name is removed meanwhile. A peer that does not read is
// ended.
class FileReactor : public grpc::ServerWriteReactor<v1::FileChunk> {
 public:
  FileReactor(absl::StatusOr<OpenFile> open, MeteredPeer peer, const FleetEdge& edge,
              grpc::CallbackServerContext* context)
      : context_(context),
        peer_(std::move(peer)),
        watch_(std::make_shared<WriteWatch>(context, edge.unread_timeout)),
        writes_(edge.writes) {
    if (!open.ok()) {
      Finish(ToGrpc(open.status()));
    } else {
      open_ = *std::move(open);
      WriteSoon();
    }
  }

  void OnWriteDone(bool ok) override {
    watch_->Done();
    share_ = {};
    ok ? WriteSoon() : Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override {
    watch_->Close();
    delete this;
  }

 private:
  // As soon as the client's budget allows it.
  void WriteSoon() {
    const absl::Duration wait = peer_.Spend(0);
    if (wait <= absl::ZeroDuration()) return WriteNext();
    if (context_->IsCancelled()) return Finish(grpc::Status::CANCELLED);
    slow_down_.Then(wait, [this] { WriteSoon(); });
  }

  void WriteNext() {
    if (open_.offset == open_.total) return Finish(grpc::Status::OK);
    std::string* data = chunk_.mutable_data();
    share_ = writes_->Take(static_cast<int64_t>(open_.total - open_.offset));
    data->resize(static_cast<size_t>(share_.bytes()));
    if (!open_.file.read(&(*data)[0], static_cast<std::streamsize>(data->size()))) {
      return Finish(grpc::Status(grpc::StatusCode::DATA_LOSS, "the file cannot be read"));
    }
    chunk_.set_total(open_.total);
    chunk_.set_offset(open_.offset);
    open_.offset += data->size();
    peer_.Spend(static_cast<int64_t>(data->size()));
    watch_->Began();
    StartWrite(&chunk_);
  }

  grpc::CallbackServerContext* const context_;
  const MeteredPeer peer_;
  const std::shared_ptr<WriteWatch> watch_;
  WriteBudget* const writes_;
  WriteBudget::Share share_;  // of the write that is under way
  SlowDown slow_down_;
  OpenFile open_;
  v1::FileChunk chunk_;
};

}  // namespace

grpc::ServerBidiReactor<v1::ClientMessage, v1::ServerMessages>* FleetService::Session(
    grpc::CallbackServerContext* context) {
  return SessionReactor::Start(edge_, next_session_.fetch_add(1), context);
}

grpc::ServerWriteReactor<v1::FileChunk>* FleetService::DownloadCheckpoint(grpc::CallbackServerContext* context,
                                                                          const v1::CheckpointRequest* request) {
  MeteredPeer peer(edge_.gatekeeper, *context->auth_context());
  absl::StatusOr<OpenFile> open = OpenCheckpoint(*edge_.runs, peer, *request);
  return new FileReactor(std::move(open), std::move(peer), edge_, context);
}

grpc::ServerWriteReactor<v1::FileChunk>* FleetService::DownloadModule(grpc::CallbackServerContext* context,
                                                                      const v1::ModuleRequest* request) {
  MeteredPeer peer(edge_.gatekeeper, *context->auth_context());
  absl::StatusOr<OpenFile> open = OpenModule(*edge_.runs, peer, *request);
  return new FileReactor(std::move(open), std::move(peer), edge_, context);
}

}  // namespace terse
