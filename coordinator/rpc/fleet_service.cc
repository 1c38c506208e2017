#include "coordinator/rpc/fleet_service.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/rpc/session_reactor.h"
#include "core/status.h"
#include "proto/grpc_status.h"
#include "proto/session_wire.h"

namespace terse {
namespace {

// Streams a checkpoint file from an offset on. The file stays readable when retention removes its name meanwhile.
class CheckpointReactor : public grpc::ServerWriteReactor<v1::CheckpointChunk> {
 public:
  CheckpointReactor(const RunRegistry& runs, const v1::CheckpointRequest& request) {
    const absl::Status status = Find(runs, request);
    if (!status.ok()) {
      Finish(ToGrpc(status));
    } else {
      WriteNext();
    }
  }

  void OnWriteDone(bool ok) override { ok ? WriteNext() : Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  absl::Status Find(const RunRegistry& runs, const v1::CheckpointRequest& request) {
    TERSE_ASSIGN_OR_RETURN(const Id128 lineage, Id128::FromBytes(request.lineage()));
    const RunHost* run = runs.FindLineage(lineage);
    if (run == nullptr) return absl::NotFoundError("another run is served here");
    TERSE_RETURN_IF_ERROR(run->Loop().status());  // UNAVAILABLE: the client tries again
    return run->Use([&](const RunHost::Live& live) { return Open(live.store.get(), request); });
  }

  absl::Status Open(RunStore* store, const v1::CheckpointRequest& request) {
    absl::StatusOr<RunStore::CheckpointFile> newest = store->NewestCheckpointFile();
    if (!newest.ok()) return newest.status();
    if (static_cast<uint64_t>(newest->version) != request.version()) {
      return absl::NotFoundError(absl::StrCat("checkpoint ", request.version(), " was replaced by ", newest->version));
    }
    if (request.offset() >= static_cast<uint64_t>(newest->bytes)) {
      return absl::OutOfRangeError(absl::StrCat("offset ", request.offset(), " is past the end at ", newest->bytes));
    }
    file_.open(newest->path, std::ios::binary);
    file_.seekg(static_cast<std::streamoff>(request.offset()));
    if (!file_) return absl::NotFoundError(absl::StrCat("checkpoint ", request.version(), " was just replaced"));
    offset_ = request.offset();
    total_ = newest->bytes;
    return absl::OkStatus();
  }

  void WriteNext() {
    if (offset_ == total_) return Finish(grpc::Status::OK);
    std::string* data = chunk_.mutable_data();
    data->resize(std::min<uint64_t>(kChunkBytes, total_ - offset_));
    if (!file_.read(&(*data)[0], static_cast<std::streamsize>(data->size()))) {
      return Finish(grpc::Status(grpc::StatusCode::DATA_LOSS, "the checkpoint file cannot be read"));
    }
    chunk_.set_total(total_);
    chunk_.set_offset(offset_);
    offset_ += data->size();
    StartWrite(&chunk_);
  }

  std::ifstream file_;
  uint64_t offset_ = 0;
  uint64_t total_ = 0;
  v1::CheckpointChunk chunk_;
};

}  // namespace

grpc::ServerBidiReactor<v1::ClientMessage, v1::ServerMessages>* FleetService::Session(
    grpc::CallbackServerContext* context) {
  return SessionReactor::Start(runs_, next_session_.fetch_add(1), context);
}

grpc::ServerWriteReactor<v1::CheckpointChunk>* FleetService::DownloadCheckpoint(grpc::CallbackServerContext* context,
                                                                                const v1::CheckpointRequest* request) {
  return new CheckpointReactor(*runs_, *request);
}

}  // namespace terse
