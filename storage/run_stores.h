// Where a coordinator's runs are kept: each in its own directory (storage/state_directory.h), or each in its own schema
// of a PostgreSQL database, with a directory for what can be made anew. A relay's client half keeps its state beside
// them.
#ifndef TERSE_STORAGE_RUN_STORES_H_
#define TERSE_STORAGE_RUN_STORES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/file_system.h"
#include "storage/run_store.h"
#include "storage/store_lease.h"

namespace terse {

struct HeldRun {
  std::string name;
  std::string directory;
};

// A directory of a ClientState, and the files that it is among, which outlive the RunStores.
struct UpstreamFiles {
  std::shared_ptr<FileSystem> files;
  std::string directory;
};

// A run is named by its directory everywhere. Thread-safe for different runs.
class RunStores {
 public:
  virtual ~RunStores() = default;

  // Where the runs are, for people.
  virtual const std::string& place() const = 0;
  // The runs there are, sorted; before them one that an earlier release keeps in the state directory itself.
  virtual absl::StatusOr<std::vector<HeldRun>> Held() = 0;
  // As RunStore::Open.
  virtual absl::StatusOr<std::unique_ptr<RunStore>> Open(const std::string& directory) = 0;
  // Whether there is a run that is neither finished nor stopped. No process may have its store open.
  virtual absl::StatusOr<bool> HoldsUnfinishedRun(const std::string& directory) = 0;
  // Durably moves the run to another directory beside its own, which nobody has. When that fails, it is where it was;
  // after a sync that failed (IsSyncFailure) nobody knows.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Directories of runs that were deleted (kDeletedSuffix) and of which something is left.
  virtual absl::StatusOr<std::vector<std::string>> Deleted() = 0;
  // Decides who serves the runs; null where a lock of the state directory does. Open, Rename and RemoveOutside need it.
  virtual StoreLease* lease() { return nullptr; }
  // Removes what there is of the run outside of its directory. Returns the bytes that are gone.
  virtual absl::StatusOr<uint64_t> RemoveOutside(const std::string& directory) = 0;
  // Where the client half of the relay keeps its state whose runs these are. Needs the lease, and is called once.
  virtual absl::StatusOr<UpstreamFiles> OpenUpstream() = 0;
};

// The runs in the directories of a coordinator's state directory.
std::unique_ptr<RunStores> RunsInDirectories(const std::string& state_directory);

}  // namespace terse

#endif  // TERSE_STORAGE_RUN_STORES_H_
