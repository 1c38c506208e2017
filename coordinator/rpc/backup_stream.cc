#include "coordinator/rpc/backup_stream.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "proto/backup_hash.h"
#include "proto/session_wire.h"
#include "storage/temporary_directory.h"

namespace terse {
namespace {

constexpr char kCopyPrefix[] = "backup-";
constexpr char kCopySuffix[] = ".tmp";

// Names of the files below `directory`, without those of locks, sorted.
absl::StatusOr<std::vector<std::string>> FilesBelow(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = std::filesystem::path(it->path()).lexically_relative(directory).string();
    if (it->is_regular_file(error) && name != "lock") names.push_back(name);
  }
  if (error) return absl::UnavailableError(absl::StrCat("cannot list ", directory, ": ", error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

// Sends chunks and keeps their hash.
class ChunkWriter {
 public:
  explicit ChunkWriter(const std::function<bool(const v1::BackupChunk&)>& write) : write_(write) {}

  absl::Status WriteFile(const std::string& directory, const std::string& name) {
    const std::string path = absl::StrCat(directory, "/", name);
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const int64_t size = file ? static_cast<int64_t>(file.tellg()) : 0;
    file.seekg(0);
    v1::BackupChunk chunk;
    chunk.set_name(name);
    chunk.set_size(size);
    for (int64_t at = 0; at == 0 || at < size; at += kChunkBytes) {
      std::string* data = chunk.mutable_data();
      data->resize(std::min(kChunkBytes, size - at));
      if (!file.read(&(*data)[0], static_cast<std::streamsize>(data->size()))) {
        return absl::UnavailableError(absl::StrCat("cannot read ", path));
      }
      TERSE_RETURN_IF_ERROR(Write(chunk));
      chunk.Clear();
    }
    return absl::OkStatus();
  }

  absl::Status WriteHash() {
    v1::BackupChunk chunk;
    chunk.set_hash(hash_.ToBytes());
    return Write(chunk);
  }

 private:
  absl::Status Write(const v1::BackupChunk& chunk) {
    hash_.Add(chunk);
    return write_(chunk) ? absl::OkStatus() : absl::CancelledError("the operator went away");
  }

  const std::function<bool(const v1::BackupChunk&)>& write_;
  BackupHash hash_;
};

}  // namespace

absl::Status StreamBackup(const RunHost& run, const std::function<bool(const v1::BackupChunk&)>& write) {
  const TemporaryDirectory copy(absl::StrCat(run.directory(), "/", kCopyPrefix, Id128::Random().ToHex(), kCopySuffix));
  TERSE_RETURN_IF_ERROR(run.Use([&](const RunHost::Live& live) { return live.store->Backup(copy.path()); }));
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, FilesBelow(copy.path()));
  ChunkWriter writer(write);
  for (const std::string& name : names) TERSE_RETURN_IF_ERROR(writer.WriteFile(copy.path(), name));
  return writer.WriteHash();
}

void RemoveStaleBackups(const std::string& run_directory) {
  std::error_code error;
  std::vector<std::string> stale;
  for (std::filesystem::directory_iterator it(run_directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (absl::StartsWith(name, kCopyPrefix) && absl::EndsWith(name, kCopySuffix)) stale.push_back(it->path().string());
  }
  for (const std::string& path : stale) RemoveTree(path);
}

}  // namespace terse
