#include "tersectl/backup.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/file_system.h"
#include "core/status.h"
#include "storage/module_file.h"
#include "storage/run_store.h"
#include "storage/state_directory.h"
#include "storage/temporary_directory.h"

namespace terse {
namespace {

constexpr char kDatabase[] = "run.sqlite";
// The folders of a run's directory, and how the files in them end, whose names are numbers otherwise.
constexpr const char* kFolders[] = {"checkpoints", "segments"};
struct NumberedFile {
  const char* folder;
  const char* suffix;
};
constexpr NumberedFile kNumberedFiles[] = {{"checkpoints", ".ckpt"}, {"checkpoints", ".state"}, {"segments", ".seg"}};

bool IsNumbered(absl::string_view name, const NumberedFile& kind) {
  if (!absl::ConsumePrefix(&name, absl::StrCat(kind.folder, "/")) || !absl::ConsumeSuffix(&name, kind.suffix)) {
    return false;
  }
  return !name.empty() && std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// An absolute path without "." and "..", so that it has a parent.
std::string Absolute(const std::string& path) {
  std::string clean = std::filesystem::absolute(path).lexically_normal().string();
  while (clean.size() > 1 && clean.back() == '/') clean.pop_back();
  return clean;
}

std::string ParentOf(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

// Makes the names in a run's directory durable, and then the directory's own new name.
absl::Status Publish(const std::string& partial, const std::string& directory) {
  FileSystem& files = PosixFiles();
  for (const char* folder : kFolders) TERSE_RETURN_IF_ERROR(files.SyncDirectory(FilePath(partial, folder)));
  TERSE_RETURN_IF_ERROR(files.SyncDirectory(partial));
  TERSE_RETURN_IF_ERROR(files.Rename(partial, directory));
  return files.SyncDirectory(ParentOf(directory));
}

absl::Status MakeRunDirectory(const TemporaryDirectory& directory) {
  for (const char* folder : kFolders) {
    TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(FilePath(directory.path(), folder)));
  }
  return absl::OkStatus();
}

// Writes the files of a backup's stream.
class BackupWriter {
 public:
  explicit BackupWriter(std::string directory) : directory_(std::move(directory)) {}

  absl::Status Add(const v1::BackupChunk& chunk) {
    if (!chunk.name().empty()) TERSE_RETURN_IF_ERROR(Begin(chunk));
    if (file_ == nullptr || chunk.data().size() > left_) {
      return absl::DataLossError("the coordinator sent more of a file than it announced; back up again");
    }
    left_ -= chunk.data().size();
    result_.bytes += chunk.data().size();
    return file_->Append(chunk.data());
  }

  // After the last chunk.
  absl::StatusOr<BackupResult> Finish() {
    TERSE_RETURN_IF_ERROR(End());
    if (!has_database_) return absl::DataLossError("the coordinator sent no database; back up again");
    return result_;
  }

 private:
  absl::Status Begin(const v1::BackupChunk& chunk) {
    TERSE_RETURN_IF_ERROR(End());
    if (!IsBackupFile(chunk.name())) {
      return absl::DataLossError(absl::StrCat("the coordinator sent a file that no run has: ", chunk.name()));
    }
    TERSE_ASSIGN_OR_RETURN(file_, PosixFiles().Create(absl::StrCat(directory_, "/", chunk.name())));
    left_ = chunk.size();
    has_database_ = has_database_ || chunk.name() == kDatabase;
    ++result_.files;
    return absl::OkStatus();
  }

  absl::Status End() {
    if (file_ == nullptr) return absl::OkStatus();
    if (left_ > 0) return absl::DataLossError("the coordinator sent less of a file than it announced; back up again");
    TERSE_RETURN_IF_ERROR(file_->Sync());
    file_.reset();
    return absl::OkStatus();
  }

  const std::string directory_;
  std::unique_ptr<WritableFile> file_;
  uint64_t left_ = 0;
  bool has_database_ = false;
  BackupResult result_;
};

absl::Status CopyFileSynced(const std::string& from, const std::string& to) {
  constexpr size_t kBlock = size_t{1} << 20;
  std::ifstream in(from, std::ios::binary);
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> out, PosixFiles().Create(to));
  std::string block(kBlock, '\0');
  while (in.read(&block[0], kBlock) || in.gcount() > 0) {
    TERSE_RETURN_IF_ERROR(out->Append(absl::string_view(block).substr(0, in.gcount())));
  }
  if (!in.eof()) return absl::UnavailableError(absl::StrCat("cannot read ", from));
  return out->Sync();
}

absl::Status CopyNumberedFiles(const std::string& from, const std::string& folder, const std::string& to) {
  const absl::StatusOr<std::vector<std::string>> numbers = PosixFiles().List(FilePath(from, folder));
  // A run without large messages has no segments.
  if (absl::IsNotFound(numbers.status())) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(numbers.status());
  for (const std::string& number : *numbers) {
    const std::string name = FilePath(folder, number);
    if (IsBackupFile(name)) TERSE_RETURN_IF_ERROR(CopyFileSynced(FilePath(from, name), FilePath(to, name)));
  }
  return absl::OkStatus();
}

// Copies what a backup holds; the database's journal files, should a run's own directory be given, as well.
absl::Status CopyRun(const std::string& from, const std::string& to) {
  FileSystem& files = PosixFiles();
  TERSE_RETURN_IF_ERROR(CopyModule(files, from, to));
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(from));
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, kDatabase)) continue;
    TERSE_RETURN_IF_ERROR(CopyFileSynced(absl::StrCat(from, "/", name), absl::StrCat(to, "/", name)));
  }
  for (const char* folder : kFolders) TERSE_RETURN_IF_ERROR(CopyNumberedFiles(from, folder, to));
  return absl::OkStatus();
}

// The lock that keeps every coordinator away from a state directory, and the run that is kept in it directly.
struct StateLock {
  std::unique_ptr<DirectoryLock> lock;
  std::unique_ptr<RunStore> in_place;
  std::string in_place_name;
};

absl::StatusOr<StateLock> LockState(const std::string& directory) {
  constexpr char kRemedy[] = "stop the coordinator first (`tersectl stop --shutdown`)";
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(directory));
  StateLock state;
  if (!HoldsRun(PosixFiles(), directory)) {
    absl::StatusOr<std::unique_ptr<DirectoryLock>> lock = PosixFiles().Lock(directory);
    if (!lock.ok()) return Annotate(lock.status(), kRemedy);
    state.lock = *std::move(lock);
    return state;
  }
  absl::StatusOr<std::unique_ptr<RunStore>> store = RunStore::Open(directory);
  if (!store.ok()) return Annotate(store.status(), kRemedy);
  state.in_place = *std::move(store);
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> run, state.in_place->Run());
  if (run.has_value()) state.in_place_name = run->name;
  return state;
}

// Reads the copied run's own name and version.
absl::Status Describe(const std::string& backup, const std::string& copy, RestoreResult* result) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunStore> store,
                         RunStore::Open(copy, PosixFiles(), RunStore::Depth::kEverything));
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> run, store->Run());
  if (!run.has_value()) return absl::NotFoundError("the backup holds no run");
  TERSE_RETURN_IF_ERROR(CheckModule(backup, *run));
  TERSE_ASSIGN_OR_RETURN(const Head head, store->GetHead());
  if (result->run.empty()) result->run = run->name;
  result->version = head.version;
  return absl::OkStatus();
}

// Puts the run that is there aside. Sets result->replaced.
absl::Status MakeRoom(const RestoreRequest& request, RestoreResult* result) {
  if (!Exists(result->directory)) return absl::OkStatus();
  if (!request.force) {
    return absl::AlreadyExistsError(absl::StrCat(result->directory,
                                                 " holds a run; restore under another name with "
                                                 "--run, or replace it with --force"));
  }
  result->replaced = absl::StrCat(result->directory, kReplacedSuffix);
  if (Exists(result->replaced)) {
    return absl::AlreadyExistsError(
        absl::StrCat(result->replaced, " is there from an earlier restore; remove it first"));
  }
  return PosixFiles().Rename(result->directory, result->replaced);
}

}  // namespace

bool IsBackupFile(absl::string_view name) {
  if (name == kDatabase || IsModelFile(name)) return true;
  return std::any_of(std::begin(kNumberedFiles), std::end(kNumberedFiles),
                     [name](const NumberedFile& kind) { return IsNumbered(name, kind); });
}

absl::Status CheckModule(const std::string& directory, const RunRecord& run) {
  v1::RunConfig config;
  if (!config.ParseFromString(run.config)) {
    return absl::DataLossError(
        absl::StrCat(directory, " holds a run whose configuration cannot be read; restore another backup"));
  }
  ModelSpec model;
  model.name = config.model().name();
  model.hash = config.model().hash();
  return ReadModule(PosixFiles(), directory, model).status();
}

absl::StatusOr<BackupResult> SaveBackup(AdminClient& client, const std::string& directory) {
  const std::string target = Absolute(directory);
  if (Exists(target)) {
    return absl::AlreadyExistsError(absl::StrCat(target, " exists; name a new directory with --out"));
  }
  const TemporaryDirectory partial(absl::StrCat(target, kPartialSuffix));
  TERSE_RETURN_IF_ERROR(MakeRunDirectory(partial));
  BackupWriter writer(partial.path());
  TERSE_RETURN_IF_ERROR(client.Backup([&](const v1::BackupChunk& chunk) { return writer.Add(chunk); }));
  TERSE_ASSIGN_OR_RETURN(const BackupResult result, writer.Finish());
  TERSE_RETURN_IF_ERROR(Publish(partial.path(), target));
  return result;
}

absl::StatusOr<RestoreResult> RestoreBackup(const RestoreRequest& request) {
  const std::string state = Absolute(request.state_directory);
  if (!HoldsRun(PosixFiles(), request.backup)) {
    return absl::NotFoundError(absl::StrCat(request.backup, " holds no backup of a run (no ", kDatabase, ")"));
  }
  if (absl::StrContains(request.run, '/') || absl::StartsWith(request.run, ".") || IsNotServed(request.run)) {
    return absl::InvalidArgumentError(absl::StrCat("'", request.run, "' cannot name a run"));
  }
  TERSE_ASSIGN_OR_RETURN(const StateLock lock, LockState(state));
  const TemporaryDirectory copy(RunDirectory(state, absl::StrCat("restore", kPartialSuffix)));
  TERSE_RETURN_IF_ERROR(MakeRunDirectory(copy));
  TERSE_RETURN_IF_ERROR(CopyRun(request.backup, copy.path()));
  TERSE_RETURN_IF_ERROR(StartNewLineage(copy.path()));
  RestoreResult result;
  result.run = request.run;
  TERSE_RETURN_IF_ERROR(Describe(request.backup, copy.path(), &result));
  if (result.run == lock.in_place_name) {
    return absl::AlreadyExistsError(absl::StrCat(state, " itself holds run '", result.run,
                                                 "'; restore under another name with --run, or into another --state"));
  }
  result.directory = RunDirectory(state, result.run);
  TERSE_RETURN_IF_ERROR(MakeRoom(request, &result));
  TERSE_RETURN_IF_ERROR(Publish(copy.path(), result.directory));
  return result;
}

}  // namespace terse
