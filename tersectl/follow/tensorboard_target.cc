#include "tersectl/follow/tensorboard_target.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/file_system.h"
#include "core/status.h"
#include "proto/run_config_rules.h"
#include "tersectl/round_scalars.h"
#include "tersectl/tensorboard.h"

namespace terse {
namespace {

constexpr char kEventFile[] = "events.out.tfevents.";
constexpr size_t kLineageDigits = 16;

absl::Status SystemError(const std::string& path) {
  const int error = errno;
  return absl::ErrnoToStatus(error, path);
}

// Appends whole records: after a failure the file ends with the last one before. Readable for others, as TensorBoard
// may be another user's.
class EventFile {
 public:
  static absl::StatusOr<std::unique_ptr<EventFile>> Open(const std::string& path, int64_t created_us) {
    const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor < 0) return SystemError(path);
    std::unique_ptr<EventFile> file(new EventFile(path, descriptor));
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      return absl::FailedPreconditionError(absl::StrCat(path, " is written by another program"));
    }
    TERSE_ASSIGN_OR_RETURN(const std::string content, PosixFiles().Read(path));
    const TensorBoardPart part = ReadTensorBoard(content);
    file->bytes_ = part.bytes;
    file->step_ = part.step;
    if (part.bytes == 0) {
      TERSE_RETURN_IF_ERROR(file->Append(TensorBoardBegin(created_us)));
    } else {
      TERSE_RETURN_IF_ERROR(file->Cut());
    }
    return file;
  }
  ~EventFile() { close(descriptor_); }

  absl::Status Append(absl::string_view records) {
    TERSE_RETURN_IF_ERROR(Cut());
    for (size_t written = 0; written < records.size();) {
      const ssize_t count = write(descriptor_, records.data() + written, records.size() - written);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return SystemError(path_);
      written += static_cast<size_t>(count);
    }
    bytes_ += records.size();
    return absl::OkStatus();
  }
  // The last step that was there when the file was opened.
  uint64_t step() const { return step_; }

 private:
  EventFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  // Removes what is behind the last whole record.
  absl::Status Cut() {
    return ftruncate(descriptor_, static_cast<off_t>(bytes_)) == 0 ? absl::OkStatus() : SystemError(path_);
  }

  const std::string path_;
  const int descriptor_;
  size_t bytes_ = 0;
  uint64_t step_ = 0;
};

class TensorBoardTracker : public RunTracker {
 public:
  explicit TensorBoardTracker(std::unique_ptr<EventFile> file) : file_(std::move(file)) {}

  absl::optional<uint64_t> RoundsAfter() const override { return 0; }
  void TakeRound(const v1::Round& round, const v1::TracesReply&) override {
    const Scalars scalars = scalars_.Add(round);
    if (round.id() > file_->step() && !scalars.empty()) records_ += TensorBoardStep(round, scalars);
  }
  absl::Status Deliver() override {
    if (records_.empty()) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(file_->Append(records_));
    records_.clear();
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<EventFile> file_;
  RoundScalars scalars_;
  std::string records_;
};

// Whether the folder has event files of this name's other lineages only.
absl::StatusOr<bool> IsOfAnother(const std::string& folder, const std::string& name) {
  const absl::StatusOr<std::vector<std::string>> files = PosixFiles().List(folder);
  if (absl::IsNotFound(files.status())) return false;
  if (!files.ok()) return files.status();
  if (std::find(files->begin(), files->end(), name) != files->end()) return false;
  return std::any_of(files->begin(), files->end(),
                     [](const std::string& file) { return absl::StartsWith(file, kEventFile); });
}

class TensorBoardTarget : public FollowTarget {
 public:
  explicit TensorBoardTarget(std::string directory) : directory_(std::move(directory)) {}

  std::string name() const override { return absl::StrCat("TensorBoard in ", directory_); }

  absl::StatusOr<std::unique_ptr<RunTracker>> Begin(const v1::Status& run, bool is_new) override {
    // It comes from the network and becomes a path.
    if (!IsRunName(run.run())) {
      return absl::DataLossError(
          absl::StrCat("no run can have the name '", run.run(), "'; run names have ", RunNameForm()));
    }
    const std::string lineage = absl::BytesToHexString(run.lineage()).substr(0, kLineageDigits);
    const std::string name = absl::StrCat(kEventFile, run.created_us() / 1'000'000, ".", lineage);
    std::string folder = FilePath(directory_, run.run());
    TERSE_ASSIGN_OR_RETURN(const bool is_of_another, IsOfAnother(folder, name));
    if (is_of_another) absl::StrAppend(&folder, "-", lineage);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return absl::ErrnoToStatus(error.value(), folder);
    TERSE_ASSIGN_OR_RETURN(std::unique_ptr<EventFile> file, EventFile::Open(FilePath(folder, name), run.created_us()));
    return std::make_unique<TensorBoardTracker>(std::move(file));
  }

 private:
  const std::string directory_;
};

}  // namespace

std::unique_ptr<FollowTarget> MakeTensorBoardTarget(const std::string& directory) {
  return std::make_unique<TensorBoardTarget>(directory);
}

}  // namespace terse
