// The names of the directories in which a coordinator keeps its runs, below its state directory.
//
//   DIR/lock              one coordinator a directory
//   DIR/runs/NAME/...     one run each, as storage/run_store.h describes
//   DIR/upstream/...      of a relay: the state of its client half, as storage/client_state.h describes
//
// A coordinator of an earlier release kept its one run in DIR itself; it stays there.
#ifndef TERSE_STORAGE_STATE_DIRECTORY_H_
#define TERSE_STORAGE_STATE_DIRECTORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/file_system.h"

namespace terse {

// The database in a run's directory.
inline constexpr char kRunFile[] = "run.sqlite";

// Endings of the directories in DIR/runs that are not served: a run that a restore replaced, and one that is being
// copied.
inline constexpr char kReplacedSuffix[] = ".before-restore";
inline constexpr char kPartialSuffix[] = ".partial";
// The ending of a deleted run of which something is left, which may be removed. No run's name ends so (RunNameForm).
inline constexpr char kDeletedSuffix[] = "~deleted";

// Whether a directory of that name has one of these endings.
bool IsNotServed(absl::string_view name);

// INVALID_ARGUMENT for the name of a run whose directory would be one of those: the run would be gone at the next
// start.
absl::Status CheckServedName(absl::string_view name);

// DIR/runs/NAME, or DIR for an empty name.
std::string RunDirectory(const std::string& state_directory, const std::string& name);

// DIR/upstream.
std::string UpstreamDirectory(const std::string& state_directory);

// Whether the directory holds a run's database.
bool HoldsRun(FileSystem& files, const std::string& directory);

// Names of the runs in DIR/runs, sorted; none when there is no such directory. Statuses of FileSystem.
absl::StatusOr<std::vector<std::string>> ListRunNames(FileSystem& files, const std::string& state_directory);

// Directories in DIR/runs of deleted runs of which something is left; none when there is no DIR/runs. Statuses of
// FileSystem.
absl::StatusOr<std::vector<std::string>> DeletedDirectories(FileSystem& files, const std::string& state_directory);

}  // namespace terse

#endif  // TERSE_STORAGE_STATE_DIRECTORY_H_
