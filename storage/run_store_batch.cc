// Transactions: of one call, or of a batch of calls.
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/sql_run_store.h"

namespace terse {

absl::Status SqlRunStore::CheckEpoch() {
  // The row is locked up to the commit, where more than one process can write: nobody takes over in between.
  static const auto& query = *new SqlText("SELECT epoch FROM head", "SELECT epoch FROM head FOR SHARE");
  Statement row = writer_->Prepare(query);
  TERSE_ASSIGN_OR_RETURN(const bool found, row.Step());
  const int64_t epoch = found ? row.GetInt(0) : 0;
  if (epoch == epoch_ || Mutated(Mutant::kNoFencing)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(writer_->place(), " was taken over by another coordinator (epoch ",
                                                    epoch, ", ours is ", epoch_, "); stop one of the two"));
}

absl::Status SqlRunStore::Write(absl::FunctionRef<absl::Status(SqlDb&)> body) {
  const bool in_batch = InBatch();
  absl::MutexLock lock(&write_mutex_);
  if (in_batch) {
    TERSE_RETURN_IF_ERROR(OpenBatch());
    // A call that failed half-way has left its first half in the transaction, and the database may have ended that.
    return batch_status_ = body(*writer_);
  }
  write_mutex_.Await(absl::Condition(this, &SqlRunStore::IsUnbatched));
  return writer_->InTransaction([&]() -> absl::Status {
    write_mutex_.AssertHeld();
    TERSE_RETURN_IF_ERROR(CheckEpoch());
    TERSE_RETURN_IF_ERROR(body(*writer_));
    return messages_->Sync();
  });
}

absl::Status SqlRunStore::Read(absl::FunctionRef<absl::Status(SqlDb&)> body) {
  if (InBatch()) {
    absl::MutexLock lock(&write_mutex_);
    TERSE_RETURN_IF_ERROR(OpenBatch());
    return body(*writer_);
  }
  const ReaderPool::Lease lease = readers_.Take();
  SqlDb& db = lease.db();
  TERSE_RETURN_IF_ERROR(db.BeginReading());
  const absl::Status status = body(db);
  const absl::Status end = db.EndReading();
  return status.ok() ? end : status;
}

absl::Status SqlRunStore::OpenBatch() {
  if (!batch_status_.ok() || batch_open_) return batch_status_;
  // A batch that could not begin must not begin at a later call, without what came before.
  batch_status_ = writer_->Begin();
  if (!batch_status_.ok()) return batch_status_;
  batch_open_ = true;
  return batch_status_ = CheckEpoch();
}

absl::Status SqlRunStore::CloseBatch(absl::Status status) {
  if (status.ok()) status = batch_status_;
  if (!batch_open_) return status;
  batch_open_ = false;
  if (status.ok()) status = messages_->Sync();
  return writer_->End(std::move(status));
}

absl::Status SqlRunStore::BeginBatch() {
  if (InBatch()) return absl::FailedPreconditionError("this thread has a batch already; end it first");
  absl::MutexLock lock(&write_mutex_);
  write_mutex_.Await(absl::Condition(this, &SqlRunStore::IsUnbatched));
  batch_thread_ = std::this_thread::get_id();
  batch_status_ = absl::OkStatus();
  return absl::OkStatus();
}

absl::Status SqlRunStore::CommitBatch() {
  if (!InBatch()) return absl::FailedPreconditionError("this thread has no batch to commit");
  absl::MutexLock lock(&write_mutex_);
  const absl::Status status = CloseBatch(absl::OkStatus());
  batch_thread_ = std::thread::id();
  return status;
}

void SqlRunStore::DropBatch() {
  if (!InBatch()) return;
  absl::MutexLock lock(&write_mutex_);
  CloseBatch(absl::CancelledError("the batch was dropped")).IgnoreError();
  batch_thread_ = std::thread::id();
}

absl::Status SqlRunStore::SplitBatch() {
  if (!InBatch()) return absl::OkStatus();
  absl::MutexLock lock(&write_mutex_);
  return CloseBatch(absl::OkStatus());
}

}  // namespace terse
