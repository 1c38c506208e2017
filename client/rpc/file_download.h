// Downloads of the coordinator's files, beside a session, and what the end of a stream means.
#ifndef TERSE_CLIENT_RPC_FILE_DOWNLOAD_H_
#define TERSE_CLIENT_RPC_FILE_DOWNLOAD_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/id128.h"
#include "grpcpp/grpcpp.h"
#include "security/connection_failure.h"
#include "terse/v1/fleet.grpc.pb.h"

namespace terse {

// Returns why a stream ended. A refused certificate is final (PERMISSION_DENIED), unless it has only expired: then, as
// in all other cases, the next connection may help (UNAVAILABLE).
absl::Status EndOfStream(const grpc::Status& status, Spoke spoke);

// The connection that files come over.
struct DownloadFrom {
  v1::Fleet::Stub* stub = nullptr;
  Spoke spoke = Spoke::kCleartext;
  const std::atomic<bool>* stopping = nullptr;  // ends every wait
};

// As CoordinatorLink::DownloadCheckpoint and DownloadModule; CANCELLED once `stopping`.
absl::StatusOr<std::string> DownloadCheckpointFile(const DownloadFrom& from, Id128 lineage, int64_t version,
                                                   int64_t max_bytes);
absl::StatusOr<std::string> DownloadModuleFile(const DownloadFrom& from, Id128 lineage, int64_t max_bytes);

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_FILE_DOWNLOAD_H_
