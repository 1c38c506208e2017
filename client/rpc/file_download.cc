#include "client/rpc/file_download.h"

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace terse {
namespace {

constexpr int kDownloadAttempts = 10;
constexpr absl::Duration kPause = absl::Milliseconds(200);

// Starts the stream of a file's bytes from an offset on.
using FileStream = std::unique_ptr<grpc::ClientReader<v1::FileChunk>>;
using OpenFile = absl::FunctionRef<FileStream(grpc::ClientContext* context, int64_t offset)>;

// Reads one stream into `bytes`; OK when the file is whole.
absl::Status DownloadRest(OpenFile open, Spoke spoke, int64_t max_bytes, std::string* bytes) {
  grpc::ClientContext context;
  const FileStream stream = open(&context, static_cast<int64_t>(bytes->size()));
  v1::FileChunk chunk;
  uint64_t total = 0;
  while (stream->Read(&chunk)) {
    total = chunk.total();
    const bool fits = total <= static_cast<uint64_t>(max_bytes) && chunk.offset() == bytes->size() &&
                      chunk.data().size() <= total - bytes->size();
    if (!fits) {
      context.TryCancel();
      stream->Finish();
      return absl::FailedPreconditionError(
          absl::StrCat("the download announces ", total, " bytes; at most ", max_bytes, " are allowed"));
    }
    if (bytes->empty()) bytes->reserve(total);
    bytes->append(chunk.data());
  }
  const grpc::Status status = stream->Finish();
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return absl::NotFoundError(status.error_message());
  if (!status.ok()) return EndOfStream(status, spoke);
  return total > 0 && bytes->size() == total ? absl::OkStatus() : absl::UnavailableError("the download ended early");
}

absl::StatusOr<std::string> Download(OpenFile open, const DownloadFrom& from, int64_t max_bytes) {
  std::string bytes;
  absl::Status status;
  for (int attempt = 0; attempt < kDownloadAttempts && !from.stopping->load(); ++attempt) {
    const size_t before = bytes.size();
    status = DownloadRest(open, from.spoke, max_bytes, &bytes);
    if (status.ok()) return bytes;
    if (!absl::IsUnavailable(status)) return status;
    if (bytes.size() == before) absl::SleepFor(kPause);  // no progress: give the network a moment
  }
  return from.stopping->load() ? absl::CancelledError("stopping") : status;
}

}  // namespace

absl::Status EndOfStream(const grpc::Status& status, Spoke spoke) {
  if (status.error_code() == grpc::StatusCode::PERMISSION_DENIED) {
    return absl::PermissionDeniedError(absl::StrCat("the coordinator refuses this client: ", status.error_message()));
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::UnavailableError(
        "there is no service for clients at this address: give the coordinator's --listen, and not its --admin");
  }
  return absl::UnavailableError(
      absl::StrCat("the connection to the coordinator ended: ",
                   status.error_message().empty() ? "closed" : ConnectionFailureText(status.error_message(), spoke)));
}

absl::StatusOr<std::string> DownloadCheckpointFile(const DownloadFrom& from, Id128 lineage, int64_t version,
                                                   int64_t max_bytes) {
  return Download(
      [&](grpc::ClientContext* context, int64_t offset) {
        v1::CheckpointRequest request;
        request.set_lineage(lineage.ToBytes());
        request.set_version(version);
        request.set_offset(offset);
        return from.stub->DownloadCheckpoint(context, request);
      },
      from, max_bytes);
}

absl::StatusOr<std::string> DownloadModuleFile(const DownloadFrom& from, Id128 lineage, int64_t max_bytes) {
  return Download(
      [&](grpc::ClientContext* context, int64_t offset) {
        v1::ModuleRequest request;
        request.set_lineage(lineage.ToBytes());
        request.set_offset(offset);
        return from.stub->DownloadModule(context, request);
      },
      from, max_bytes);
}

}  // namespace terse
