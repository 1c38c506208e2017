// The files of a client's state directory: a manifest, replaced atomically, and blobs, which do not change while it
// names them (client_state.h). Formats: storage/SCHEMA.md.
#ifndef TERSE_STORAGE_CLIENT_FILES_H_
#define TERSE_STORAGE_CLIENT_FILES_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "core/file_system.h"
#include "storage/client_state.h"
#include "storage/manifest.h"

namespace terse {

// The advice at the end of an error about a client's damaged files.
inline constexpr char kClientRemedy[] =
    "; start over with `terse-client --state DIR --reset-state`: the client's residual is then lost, which is counted, "
    "and the run goes on";

// Whether a client makes files of this name in its state directory. The lock file does not count.
bool IsClientFile(absl::string_view name);

// The manifest in the directory; one with a zero lineage when neither it nor a blob is there. DATA_LOSS with the file
// and the remedy when it is damaged or missing; otherwise as FileSystem::Read.
absl::StatusOr<Manifest> ReadManifest(FileSystem& files, const std::string& directory);

// A file that a manifest names.
struct NamedBlob {
  std::string name;  // "dense.7"
  BlobRef blob;
};
// Those of the manifest that are not empty.
std::vector<NamedBlob> BlobsOf(const Manifest& manifest);

// The contents of a blob, which has at most as many bytes as the manifest says. Statuses of ReadManifest.
absl::StatusOr<std::string> ReadBlob(FileSystem& files, const std::string& directory, const NamedBlob& blob);
// Likewise, the lineages in the blob that the manifest names for them; none when it names none.
absl::StatusOr<std::vector<PartedLineage>> ReadParted(FileSystem& files, const std::string& directory,
                                                      const Manifest& manifest);

// The parts of a client's state that may be as large as the model.
struct LargeState {
  std::vector<float> dense;
  std::string trainer_state;
  std::string history;
};

// The contents of the blobs that a step writes. Views.
struct SealedBlobs {
  absl::Span<const float> dense;
  absl::string_view outbox;
  absl::string_view trainer;
  absl::string_view history;
  absl::string_view parted = {};
};

// Not thread-safe. Writes fail as those of ClientState do: after UNKNOWN (IsSyncFailure) nothing may be written any
// more, and every later write is refused with it. Reads fail with DATA_LOSS, the file and the remedy, when a file that
// the manifest names is missing or damaged, and as FileSystem::Read does when it cannot be read now.
class ClientFiles {
 public:
  // `files` must outlive it.
  ClientFiles(std::string directory, FileSystem& files, std::unique_ptr<DirectoryLock> lock);

  // Reads the manifest; without one manifest() stays empty.
  absl::Status Load();
  // The manifest as it is on disk; a zero lineage when there is none.
  const Manifest& manifest() const { return manifest_; }

  absl::StatusOr<LargeState> ReadLarge() const;
  absl::StatusOr<std::string> ReadOutbox() const;
  absl::StatusOr<std::vector<PartedLineage>> ReadParted() const;

  // Writes the blobs durably, and their names into `manifest`: under manifest->generation, or a greater number where
  // the manifest on disk has names with that one.
  absl::Status WriteBlobs(const SealedBlobs& blobs, Manifest* manifest);
  // Makes `manifest` the one on disk. Of the blobs that it does not name, those that the one before named for the same
  // run are kept to be overwritten by the next of their kind, and all others removed.
  absl::Status Replace(const Manifest& manifest);
  // Removes the blobs that nothing needs, best effort: Open does it again.
  void RemoveUnnamed() const;

  absl::Status SaveModel(const CachedModel& model);
  absl::optional<CachedModel> LoadModel() const;
  absl::Status SaveModule(absl::string_view bytes);
  absl::optional<std::string> LoadModule(const ModelSpec& model) const;

  // UNKNOWN: what is on disk is not known, so nothing may be written any more.
  const absl::Status& broken() const { return broken_; }

 private:
  std::string PathOf(absl::string_view name) const;
  // The names of the manifest's blobs.
  std::set<std::string> Named() const;
  // Gives the spare blob of this kind, if there is one, this name. A crash in between leaves another unnamed blob.
  absl::Status ReuseSpare(absl::string_view kind, const std::string& name);
  absl::StatusOr<std::string> Contents(absl::string_view kind, const BlobRef& blob) const;
  // The number for the names of blobs that the next manifest, of this generation, is to name.
  int64_t NumberFor(int64_t generation) const;
  // Whether the manifest's file is still the one that manifest() describes.
  bool IsUnchanged() const;
  // Passes on the status of a write, and remembers a failed sync.
  absl::Status Watch(const absl::Status& status);

  const std::string directory_;
  FileSystem& files_;
  const std::unique_ptr<DirectoryLock> lock_;
  Manifest manifest_;
  std::map<absl::string_view, std::string> spares_;  // by kind: a blob that no manifest names any more
  absl::Status broken_;
};

}  // namespace terse

#endif  // TERSE_STORAGE_CLIENT_FILES_H_
