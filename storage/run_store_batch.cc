// Transactions: of one call, or of a batch of calls.
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/sqlite_run_store.h"

namespace terse {

absl::Status SqliteRunStore::CheckEpoch() {
  TERSE_ASSIGN_OR_RETURN(const Head head, run_store_internal::SelectHead(*writer_));
  if (head.epoch == epoch_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(writer_->path(), " was taken over by another coordinator (epoch ",
                                                    head.epoch, ", ours is ", epoch_, "); stop one of the two"));
}

absl::Status SqliteRunStore::Write(absl::FunctionRef<absl::Status(SqliteDb&)> body) {
  const bool in_batch = InBatch();
  absl::MutexLock lock(&write_mutex_);
  if (in_batch) {
    TERSE_RETURN_IF_ERROR(OpenBatch());
    // A call that failed half-way has left its first half in the transaction, and SQLite may have ended that.
    return batch_status_ = body(*writer_);
  }
  write_mutex_.Await(absl::Condition(this, &SqliteRunStore::IsUnbatched));
  return writer_->InTransaction([&]() -> absl::Status {
    write_mutex_.AssertHeld();
    TERSE_RETURN_IF_ERROR(CheckEpoch());
    TERSE_RETURN_IF_ERROR(body(*writer_));
    return SyncSegments();
  });
}

absl::Status SqliteRunStore::SyncSegments() {
  if (!segments_->needs_sync()) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(segments_->Sync());
  TERSE_FAILPOINT("coordinator.segment.synced");
  return absl::OkStatus();
}

absl::Status SqliteRunStore::Read(absl::FunctionRef<absl::Status(SqliteDb&)> body) {
  if (InBatch()) {
    absl::MutexLock lock(&write_mutex_);
    TERSE_RETURN_IF_ERROR(OpenBatch());
    return body(*writer_);
  }
  const ReaderPool::Lease lease = readers_.Take();
  SqliteDb& db = lease.db();
  TERSE_RETURN_IF_ERROR(db.Prepare("BEGIN").Run());
  const absl::Status status = body(db);
  const absl::Status end = db.Prepare("ROLLBACK").Run();
  return status.ok() ? end : status;
}

absl::Status SqliteRunStore::OpenBatch() {
  if (!batch_status_.ok() || batch_open_) return batch_status_;
  TERSE_RETURN_IF_ERROR(writer_->Begin());
  batch_open_ = true;
  return batch_status_ = CheckEpoch();
}

absl::Status SqliteRunStore::CloseBatch(absl::Status status) {
  if (status.ok()) status = batch_status_;
  if (!batch_open_) return status;
  batch_open_ = false;
  if (status.ok()) status = SyncSegments();
  return writer_->End(std::move(status));
}

absl::Status SqliteRunStore::BeginBatch() {
  if (InBatch()) return absl::FailedPreconditionError("this thread has a batch already; end it first");
  absl::MutexLock lock(&write_mutex_);
  write_mutex_.Await(absl::Condition(this, &SqliteRunStore::IsUnbatched));
  batch_thread_ = std::this_thread::get_id();
  batch_status_ = absl::OkStatus();
  return absl::OkStatus();
}

absl::Status SqliteRunStore::CommitBatch() {
  if (!InBatch()) return absl::FailedPreconditionError("this thread has no batch to commit");
  absl::MutexLock lock(&write_mutex_);
  const absl::Status status = CloseBatch(absl::OkStatus());
  batch_thread_ = std::thread::id();
  return status;
}

void SqliteRunStore::DropBatch() {
  if (!InBatch()) return;
  absl::MutexLock lock(&write_mutex_);
  CloseBatch(absl::CancelledError("the batch was dropped")).IgnoreError();
  batch_thread_ = std::thread::id();
}

absl::Status SqliteRunStore::SplitBatch() {
  if (!InBatch()) return absl::OkStatus();
  absl::MutexLock lock(&write_mutex_);
  return CloseBatch(absl::OkStatus());
}

}  // namespace terse
