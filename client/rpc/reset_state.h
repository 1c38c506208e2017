// `terse-client --reset-state`.
#ifndef TERSE_CLIENT_RPC_RESET_STATE_H_
#define TERSE_CLIENT_RPC_RESET_STATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/file_system.h"

namespace terse {

// The files that were removed from a damaged state directory.
struct RemovedState {
  std::string names;  // "MANIFEST, dense.7"
  int64_t files = 0;
  int64_t bytes = 0;
};

// Removes a client's files from its state directory, which nobody may have open; other files stay. Statuses of
// FileSystem.
absl::StatusOr<RemovedState> RemoveClientState(FileSystem& files, const std::string& directory);

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_RESET_STATE_H_
