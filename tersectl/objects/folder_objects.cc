#include "tersectl/objects/folder_objects.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/file_system.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr char kPartial[] = ".partial";

class FolderObjects : public ObjectStore {
 public:
  explicit FolderObjects(std::string directory) : directory_(std::move(directory)) {}

  std::string address() const override { return directory_; }

  absl::Status Put(const std::string& name, int64_t bytes, ReadPart read) override {
    TERSE_RETURN_IF_ERROR(CheckObjectName(name));
    const std::string path = PathOf(name);
    const std::string folder = std::filesystem::path(path).parent_path().string();
    TERSE_RETURN_IF_ERROR(files_.MakeDirectory(folder));
    const std::string partial = absl::StrCat(path, kPartial);
    absl::Status status = Write(partial, bytes, read);
    if (status.ok()) status = files_.Rename(partial, path);
    if (!status.ok()) {
      files_.Remove(partial).IgnoreError();  // the first error is the one that counts
      return status;
    }
    return files_.SyncDirectory(folder);
  }

  absl::Status Get(const std::string& name, const std::string& path) override {
    TERSE_RETURN_IF_ERROR(CheckObjectName(name));
    const std::string from = PathOf(name);
    TERSE_ASSIGN_OR_RETURN(std::string part, files_.ReadPart(from, 0, kObjectPartBytes));
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files_.Create(path));
    for (int64_t offset = 0; !part.empty();) {
      TERSE_RETURN_IF_ERROR(file->Append(part));
      offset += static_cast<int64_t>(part.size());
      TERSE_ASSIGN_OR_RETURN(part, files_.ReadPart(from, offset, kObjectPartBytes));
    }
    return file->Sync();
  }

  absl::StatusOr<std::vector<ObjectInfo>> List(const std::string& folder) override {
    TERSE_RETURN_IF_ERROR(CheckObjectName(folder));
    const absl::StatusOr<std::vector<std::string>> names = files_.List(PathOf(folder));
    if (absl::IsNotFound(names.status())) return std::vector<ObjectInfo>();
    TERSE_RETURN_IF_ERROR(names.status());
    std::vector<ObjectInfo> objects;
    for (const std::string& name : *names) {
      std::error_code error;
      const std::filesystem::directory_entry entry(PathOf(absl::StrCat(folder, "/", name)), error);
      // One that is no file, or that was removed meanwhile, is no object.
      if (error || !entry.is_regular_file(error) || absl::EndsWith(name, kPartial)) continue;
      objects.push_back({absl::StrCat(folder, "/", name), static_cast<int64_t>(entry.file_size(error))});
    }
    return objects;
  }

  absl::Status Remove(const std::string& name) override {
    TERSE_RETURN_IF_ERROR(CheckObjectName(name));
    return files_.Remove(PathOf(name));
  }

 private:
  std::string PathOf(const std::string& name) const { return absl::StrCat(directory_, "/", name); }

  absl::Status Write(const std::string& path, int64_t bytes, ReadPart read) {
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files_.Create(path));
    for (int64_t offset = 0; offset < bytes; offset += kObjectPartBytes) {
      TERSE_ASSIGN_OR_RETURN(const std::string part, read(offset, std::min(kObjectPartBytes, bytes - offset)));
      TERSE_RETURN_IF_ERROR(file->Append(part));
    }
    return file->Sync();
  }

  FileSystem& files_ = PosixFiles();
  const std::string directory_;
};

}  // namespace

std::unique_ptr<ObjectStore> MakeFolderObjects(const std::string& directory) {
  return std::make_unique<FolderObjects>(directory);
}

}  // namespace terse
