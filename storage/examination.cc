#include "storage/examination.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/file_system.h"
#include "core/status.h"
#include "storage/audit_log.h"
#include "storage/checkpoint_files.h"
#include "storage/client_files.h"
#include "storage/integrity.h"
#include "storage/message_rows.h"
#include "storage/schema.h"
#include "storage/sqlite_db.h"
#include "storage/sqlite_run_store.h"
#include "storage/state_directory.h"
#include "storage/temporary_directory.h"
#include "storage/weights_file.h"

namespace terse {
namespace {

constexpr char kLogSuffix[] = "-wal";

// 0 for a file that is not there.
int64_t FileBytes(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

absl::Status CopyFile(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot copy ", from, " to ", to));
}

// Copies a database that no process has open.
absl::Status CopyIdle(const std::string& from, const std::string& to) {
  TERSE_RETURN_IF_ERROR(CopyFile(from, to));
  const std::string log = absl::StrCat(from, kLogSuffix);
  return Exists(log) ? CopyFile(log, absl::StrCat(to, kLogSuffix)) : absl::OkStatus();
}

// Copies a database that a process writes, as it is at one moment.
absl::Status CopyBusy(const std::string& from, const std::string& to) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDb> source, SqliteDb::Open(from, SqliteDb::Mode::kObserver));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDb> copy, SqliteDb::Open(to, SqliteDb::Mode::kWriter));
  return copy->CopyFrom(*source);
}

// Copies DIRECTORY/NAME to TO/NAME, whether a process has it open or not.
absl::Status CopyDatabase(const std::string& directory, const std::string& name, const std::string& to) {
  const std::string from = FilePath(directory, name);
  // Every process that opens the database makes an index in shared memory. A crash leaves the index, but not the lock.
  const auto is_busy = [&]() -> absl::StatusOr<bool> {
    TERSE_ASSIGN_OR_RETURN(const bool locked, IsLocked(directory));
    return locked && Exists(absl::StrCat(from, "-shm"));
  };
  // A process that comes or goes meanwhile makes the copy worthless.
  for (int attempt = 0; attempt < 3; ++attempt) {
    RemoveTree(to);
    TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(to));
    TERSE_ASSIGN_OR_RETURN(const bool busy, is_busy());
    const absl::Status status = busy ? CopyBusy(from, FilePath(to, name)) : CopyIdle(from, FilePath(to, name));
    TERSE_ASSIGN_OR_RETURN(const bool still, is_busy());
    if (busy == still) return status;
  }
  return absl::UnavailableError(absl::StrCat(directory, " was taken and let go of all the time; ask again"));
}

// An error of the copy, as the original's owner would see it.
absl::Status OfOriginal(const absl::Status& status, const std::string& copy, const std::string& original) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrReplaceAll(status.message(), {{copy, original}}));
}

// An empty database is damage where there are checkpoints, so the copy gets the names of those.
absl::Status NameCheckpoints(const std::string& directory, const std::string& copy) {
  const absl::StatusOr<std::vector<std::string>> names = PosixFiles().List(CheckpointsDirectory(directory));
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(names.status());
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(FilePath(copy, "checkpoints")));
  for (const std::string& name : *names) {
    TERSE_RETURN_IF_ERROR(PosixFiles().Create(FilePath(copy, absl::StrCat("checkpoints/", name))).status());
  }
  return absl::OkStatus();
}

// Rows have checksums since, and are read with them.
constexpr int64_t kFirstSchemaWithChecksums = 2;

// Reads what opening the store would change: the schema's version and the newest round.
absl::Status LookBeforeOpening(const std::string& copy, RunExamination* found) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDb> db,
                         SqliteDb::Open(FilePath(copy, kRunFile), SqliteDb::Mode::kWriter));
  Statement version = db->Prepare("PRAGMA user_version");
  TERSE_RETURN_IF_ERROR(version.Step().status());
  found->schema_version = version.GetInt(0);
  Statement newest = db->Prepare("SELECT max(id) FROM rounds");
  // Without tables, or with those of another program, opening tells what is wrong.
  if (!newest.Step().ok()) return absl::OkStatus();
  found->round = newest.GetInt(0);
  if (found->schema_version < kFirstSchemaWithChecksums) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(found->round_state, run_store_internal::SelectRoundState(*db, found->round));
  return absl::OkStatus();
}

// The log must lead from the newest whole checkpoint to the head; without one, no coordinator can serve the run.
absl::Status CheckLog(RunStore& store, const std::string& directory, const std::vector<RecordedCheckpoint>& checkpoints,
                      const std::vector<FileExamination>& found) {
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].status.ok()) return store.LogBytes(checkpoints[i].version).status();
  }
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> run, store.Run());
  if (!run.has_value()) return absl::OkStatus();
  const std::string reason = found.empty() ? "none is recorded" : std::string(found.back().status.message());
  return NoWholeCheckpoint(CheckpointsDirectory(directory), reason, kDatabaseRemedy);
}

// Reads every message that the database names in a segment file.
absl::Status ExamineSegments(SqliteDb& db, const std::string& directory, Examined examined,
                             std::vector<FileExamination>* found) {
  int64_t newest = 0;
  return ForEachPlace(db, [&](const SegmentPlace& place) {
    if (place.segment != newest) found->push_back({SegmentName(place.segment), 0, absl::OkStatus()});
    newest = place.segment;
    FileExamination& segment = found->back();
    segment.bytes += place.length;
    segment.status.Update(ReadSegment(PosixFiles(), SegmentsDirectory(directory), place).status());
    examined(place.length);
    return absl::OkStatus();
  });
}

absl::Status LookInside(const std::string& directory, const std::string& copy, Examined examined,
                        RunExamination* found) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunStore> store,
                         RunStore::Open(copy, PosixFiles(), RunStore::Depth::kDatabase));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDb> db,
                         SqliteDb::Open(FilePath(copy, kRunFile), SqliteDb::Mode::kReader));
  TERSE_RETURN_IF_ERROR(CheckReferences(*db));
  TERSE_ASSIGN_OR_RETURN(found->run, store->Run());
  TERSE_ASSIGN_OR_RETURN(found->head, store->GetHead());
  TERSE_ASSIGN_OR_RETURN(const std::vector<ClientRecord> clients, store->Clients());
  found->clients = static_cast<int64_t>(clients.size());
  examined(found->database_bytes);
  TERSE_ASSIGN_OR_RETURN(const std::vector<RecordedCheckpoint> checkpoints,
                         run_store_internal::SelectCheckpoints(*db, /*also_damaged=*/true));
  for (const RecordedCheckpoint& checkpoint : checkpoints) {
    found->checkpoints.push_back({CheckpointName(checkpoint.version),
                                  checkpoint.bytes.weights + checkpoint.bytes.server_state,
                                  CheckpointFiles(PosixFiles(), directory).LoadFiles(checkpoint).status()});
    examined(found->checkpoints.back().bytes);
  }
  TERSE_RETURN_IF_ERROR(ExamineSegments(*db, directory, examined, &found->segments));
  return CheckLog(*store, directory, checkpoints, found->checkpoints);
}

RunExamination ExamineOnce(const std::string& directory, const std::string& scratch, Examined examined) {
  RunExamination found;
  const std::string path = FilePath(directory, kRunFile);
  if (!Exists(path)) {
    found.database = absl::DataLossError(absl::StrCat(path, " is missing", kDatabaseRemedy));
    return found;
  }
  found.database_bytes = FileBytes(path) + FileBytes(absl::StrCat(path, kLogSuffix));
  const TemporaryDirectory copy(FilePath(scratch, "run"));
  found.database = CopyDatabase(directory, kRunFile, copy.path());
  examined(found.database_bytes);
  if (found.database.ok()) found.database = NameCheckpoints(directory, copy.path());
  if (found.database.ok()) found.database = LookBeforeOpening(copy.path(), &found);
  if (found.database.ok()) found.database = LookInside(directory, copy.path(), examined, &found);
  found.database = OfOriginal(found.database, copy.path(), directory);
  return found;
}

constexpr int kMostLooks = 4;

// A running coordinator may have retired a checkpoint, or removed a segment, since the database was copied.
bool MayBeOutdated(const RunExamination& found) {
  for (const FileExamination& checkpoint : found.checkpoints) {
    if (absl::IsNotFound(checkpoint.status)) return true;
  }
  for (const FileExamination& segment : found.segments) {
    if (!segment.status.ok()) return true;
  }
  return false;
}

// Memory for a file is only taken when it is as long as its first bytes announce.
absl::Status CheckCachedModel(const std::string& path) {
  std::string header(kWeightsHeaderBytes, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(&header[0], static_cast<std::streamsize>(header.size()));
  header.resize(static_cast<size_t>(in.gcount()));
  TERSE_RETURN_IF_ERROR(CheckWeightsHeader(kCachedModelMagic, header, static_cast<uint64_t>(FileBytes(path))));
  TERSE_ASSIGN_OR_RETURN(const std::string bytes, PosixFiles().Read(path));
  return ParseWeights(kCachedModelMagic, bytes).status();
}

ClientExamination Describe(const Manifest& manifest) {
  ClientExamination found;
  found.lineage = manifest.lineage;
  found.family = manifest.family;
  found.generation = manifest.generation;
  found.dirty = manifest.dirty;
  if (manifest.sealed) {
    found.sealed.emplace();
    found.sealed->update_id = manifest.update_id;
    found.sealed->round = manifest.round;
    found.sealed->base_version = manifest.base_version;
    found.sealed->train_us = manifest.train_us;
    found.sealed->loss = manifest.loss;
    found.sealed->cohort = manifest.cohort;
    found.sealed->metrics = ParseMetrics(manifest.metrics).value_or(std::vector<NamedMetric>());
  }
  return found;
}

}  // namespace

RunExamination ExamineRun(const std::string& directory, const std::string& scratch, Examined examined) {
  RunExamination found = ExamineOnce(directory, scratch, examined);
  // Where rounds are fast and the machine is slow, the second look may be outdated too.
  for (int look = 2; look <= kMostLooks && MayBeOutdated(found); ++look) {
    found = ExamineOnce(directory, scratch, examined);
  }
  return found;
}

int64_t CopyBytes(const std::string& directory, const std::string& name) {
  const std::string path = FilePath(directory, name);
  return 2 * (FileBytes(path) + FileBytes(absl::StrCat(path, kLogSuffix)));
}

absl::Status ExamineAudit(const std::string& directory, const std::string& scratch) {
  const TemporaryDirectory copy(FilePath(scratch, "audit"));
  absl::Status status = CopyDatabase(directory, kAuditFile, copy.path());
  if (status.ok()) status = AuditLog::Check(copy.path());
  return OfOriginal(status, copy.path(), directory);
}

ClientExamination ExamineClient(const std::string& directory, Examined examined) {
  absl::StatusOr<Manifest> manifest = ReadManifest(PosixFiles(), directory);
  while (true) {
    ClientExamination found = manifest.ok() ? Describe(*manifest) : ClientExamination();
    found.manifest = manifest.status();
    if (!manifest.ok()) return found;
    absl::StatusOr<std::vector<PartedLineage>> parted = ReadParted(PosixFiles(), directory, *manifest);
    bool is_whole = parted.ok();
    for (const NamedBlob& blob : BlobsOf(*manifest)) {
      const bool is_parted = blob.blob.hash == manifest->parted.hash;
      const absl::Status status = is_parted ? parted.status() : ReadBlob(PosixFiles(), directory, blob).status();
      is_whole = is_whole && status.ok();
      found.blobs.push_back({blob.name, static_cast<int64_t>(blob.blob.size), status});
      examined(found.blobs.back().bytes);
      if (!is_parted) found.seal_bytes += static_cast<int64_t>(blob.blob.size);  // a seal leaves it
    }
    if (parted.ok()) found.parted = *std::move(parted);
    if (const std::string model = FilePath(directory, "model"); Exists(model)) {
      found.model = FileExamination{"model", FileBytes(model), CheckCachedModel(model)};
      found.seal_bytes = std::max(found.seal_bytes, found.model->bytes);
    }
    // A running client may have sealed or settled since the manifest was read, and removed or overwritten what that one
    // names.
    absl::StatusOr<Manifest> now = ReadManifest(PosixFiles(), directory);
    if (is_whole || (now.ok() && SerializeManifest(*now) == SerializeManifest(*manifest))) return found;
    manifest = std::move(now);
  }
}

}  // namespace terse
