#include "storage/reader_pool.h"

#include "absl/status/statusor.h"

namespace terse {

ReaderPool::ReaderPool(std::unique_ptr<SqliteDb> first, std::string vfs) : path_(first->path()), vfs_(std::move(vfs)) {
  idle_.push_back(std::move(first));
}

ReaderPool::Lease ReaderPool::Take() {
  absl::MutexLock lock(&mutex_);
  if (idle_.empty() && open_ < kMost) {
    absl::StatusOr<std::unique_ptr<SqliteDb>> another = SqliteDb::Open(path_, SqliteDb::Mode::kReader, vfs_);
    if (another.ok()) {
      ++open_;
      return Lease(this, *std::move(another));
    }
  }
  mutex_.Await(absl::Condition(this, &ReaderPool::IsIdle));
  // The one that was used last has its pages in memory.
  std::unique_ptr<SqliteDb> db = std::move(idle_.back());
  idle_.pop_back();
  return Lease(this, std::move(db));
}

void ReaderPool::Return(std::unique_ptr<SqliteDb> db) {
  absl::MutexLock lock(&mutex_);
  idle_.push_back(std::move(db));
}

}  // namespace terse
