#include "storage/reader_pool.h"

#include "core/status.h"

namespace terse {

ReaderPool::ReaderPool(std::unique_ptr<SqliteDb> first, std::string vfs) : path_(first->path()), vfs_(std::move(vfs)) {
  idle_.push_back(std::move(first));
}

absl::StatusOr<ReaderPool::Lease> ReaderPool::Take() {
  {
    absl::MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      // The one that was used last has its pages in memory.
      std::unique_ptr<SqliteDb> db = std::move(idle_.back());
      idle_.pop_back();
      return Lease(this, std::move(db));
    }
  }
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDb> db, SqliteDb::Open(path_, SqliteDb::Mode::kReader, vfs_));
  return Lease(this, std::move(db));
}

void ReaderPool::Return(std::unique_ptr<SqliteDb> db) {
  absl::MutexLock lock(&mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(db));
}

}  // namespace terse
