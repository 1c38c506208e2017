// A FileSystem whose n-th change fails. Syncs that succeed do nothing: nothing that uses it looks at a disk after a
// power cut. Safe from several threads, but for on_change, which is set before there are others.
#ifndef TERSE_TESTS_STORAGE_FAULTY_FILES_H_
#define TERSE_TESTS_STORAGE_FAULTY_FILES_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "core/file_system.h"

namespace terse {

enum class FileFault {
  kFull,     // RESOURCE_EXHAUSTED, and nothing happens; a sync does not fail like this
  kError,    // UNAVAILABLE, and nothing happens; a sync gives UNKNOWN
  kTooLate,  // the same codes, though it did happen
};

class FaultyFiles final : public FileSystem {
 public:
  void Arm(int n, FileFault fault) {
    absl::MutexLock lock(&mutex_);
    left_ = n;
    fault_ = fault;
    seen_.clear();
  }
  // Whether it failed.
  bool Disarm() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(left_, 0) <= 0;
  }
  // Called before each operation that changes something; may be empty.
  std::function<void(const std::string& path)> on_change;
  // Returns the operations since Arm, for messages.
  std::string seen() const {
    absl::MutexLock lock(&mutex_);
    return seen_;
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return Open("create", path, [&] { return base_.Create(path); });
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Overwrite(const std::string& path) override {
    return Open("overwrite", path, [&] { return base_.Overwrite(path); });
  }
  absl::StatusOr<std::string> Read(const std::string& path, int64_t max_bytes) override {
    return base_.Read(path, max_bytes);
  }
  absl::StatusOr<std::string> ReadPart(const std::string& path, int64_t offset, int64_t bytes) override {
    return base_.ReadPart(path, offset, bytes);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return Do("rename", to, [&] { return base_.Rename(from, to); });
  }
  absl::Status SyncDirectory(const std::string& path) override { return Sync(path); }
  absl::Status Remove(const std::string& path) override {
    return Do("remove", path, [&] { return base_.Remove(path); });
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override { return base_.List(path); }
  absl::Status MakeDirectory(const std::string& path) override {
    return Do("make", path, [&] { return base_.MakeDirectory(path); });
  }
  absl::StatusOr<std::unique_ptr<DirectoryLock>> Lock(const std::string& directory) override {
    return base_.Lock(directory);
  }
  std::string SqliteVfs() const override { return base_.SqliteVfs(); }

 private:
  class File final : public WritableFile {
   public:
    File(FaultyFiles* files, std::string path, std::unique_ptr<WritableFile> base)
        : files_(files), path_(std::move(path)), base_(std::move(base)) {}
    absl::Status Append(absl::string_view bytes) override {
      return files_->Do("append", path_, [&] { return base_->Append(bytes); });
    }
    absl::Status Sync() override { return files_->Sync(path_); }

   private:
    FaultyFiles* const files_;
    const std::string path_;
    const std::unique_ptr<WritableFile> base_;
  };

  template <typename Base>
  absl::StatusOr<std::unique_ptr<WritableFile>> Open(const char* operation, const std::string& path, Base base) {
    std::unique_ptr<WritableFile> file;
    const absl::Status status = Do(operation, path, [&]() -> absl::Status {
      auto opened = base();
      if (!opened.ok()) return opened.status();
      file = std::make_unique<File>(this, path, *std::move(opened));
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    return file;
  }

  // The fault that this operation meets, if any.
  absl::optional<FileFault> NextFault(const char* operation, const std::string& path) {
    absl::MutexLock lock(&mutex_);
    absl::StrAppend(&seen_, operation, " ", path.substr(path.find_last_of('/') + 1), ", ");
    if (left_ <= 0 || --left_ > 0) return absl::nullopt;
    return fault_;
  }

  template <typename Operation>
  absl::Status Do(const char* operation, const std::string& path, Operation body) {
    if (on_change) on_change(path);
    const absl::optional<FileFault> fault = NextFault(operation, path);
    if (!fault.has_value() || fault == FileFault::kTooLate) {
      if (absl::Status status = body(); !status.ok() || !fault.has_value()) return status;
    }
    const auto code = fault == FileFault::kFull ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kUnavailable;
    return absl::Status(code, absl::StrCat("cannot ", operation, " ", path));
  }

  absl::Status Sync(const std::string& path) {
    const absl::optional<FileFault> fault = NextFault("sync", path);
    if (!fault.has_value() || fault == FileFault::kFull) return absl::OkStatus();
    return absl::UnknownError(absl::StrCat("cannot sync ", path));
  }

  FileSystem& base_ = PosixFiles();
  mutable absl::Mutex mutex_;
  int left_ ABSL_GUARDED_BY(mutex_) = 0;
  FileFault fault_ ABSL_GUARDED_BY(mutex_) = FileFault::kError;
  std::string seen_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace terse

#endif  // TERSE_TESTS_STORAGE_FAULTY_FILES_H_
