// Looks at state directories, those that a process holds included, and changes no byte in them: what `tersectl doctor
// --state` finds out. A database is copied and the copy opened as its owner would open it. Thread-compatible; on the
// machine's own file system.
#ifndef TERSE_STORAGE_EXAMINATION_H_
#define TERSE_STORAGE_EXAMINATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "core/id128.h"
#include "storage/client_state.h"
#include "storage/run_store.h"
#include "storage/schema.h"

namespace terse {

// Called with the number of bytes that a step has read, to show progress. A run's database is read twice, a file once.
using Examined = absl::FunctionRef<void(int64_t bytes)>;

struct FileExamination {
  std::string name;
  int64_t bytes = 0;    // as recorded
  absl::Status status;  // the error that its owner would meet
};

// A run's directory.
struct RunExamination {
  absl::Status database;  // of RunStore::Open, of references between its rows, and of the log after the checkpoint
  int64_t schema_version = 0;
  int64_t next_schema_version = kSchemaVersion;  // after the next opening
  int64_t database_bytes = 0;                    // with its write-ahead log
  // The state as it is on disk: a CLOSED round is one that the next opening aborts. Empty when `database` failed.
  absl::optional<RunRecord> run;
  Head head;
  int64_t clients = 0;
  int64_t round = 0;  // the newest; 0: none yet
  absl::optional<RoundState> round_state;
  std::vector<FileExamination> checkpoints;  // newest first; the .state files' bytes and errors are in them
  std::vector<FileExamination> segments;     // oldest first; of each the bytes of its messages, and their first error
};

// `scratch` is a directory for the copy, which is gone afterwards; it takes up to CopyBytes there.
RunExamination ExamineRun(const std::string& directory, const std::string& scratch, Examined examined);

// The most bytes that an examination writes for a database DIRECTORY/NAME: a copy of it and of its log may pass through
// a log of their own.
int64_t CopyBytes(const std::string& directory, const std::string& name);

// AuditLog::Check of DIRECTORY/audit.sqlite. `scratch` as above.
absl::Status ExamineAudit(const std::string& directory, const std::string& scratch);

// A client's directory.
struct ClientExamination {
  absl::Status manifest;  // DATA_LOSS and others of ClientState::Open; the rest is empty then
  Id128 lineage;          // zero: it has joined no run yet
  Id128 family;           // of the lineage
  int64_t generation = 0;
  bool dirty = false;                     // the residual is in a process's memory
  absl::optional<SealedUpdate> sealed;    // without its message
  std::vector<PartedLineage> parted;      // empty when their file is damaged
  std::vector<FileExamination> blobs;     // that the manifest names
  absl::optional<FileExamination> model;  // the cached one, when there is one
  int64_t seal_bytes = 0;                 // what the next seal writes, as far as one can tell: as much as the last
};

ClientExamination ExamineClient(const std::string& directory, Examined examined);

}  // namespace terse

#endif  // TERSE_STORAGE_EXAMINATION_H_
