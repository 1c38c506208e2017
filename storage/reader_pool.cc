#include "storage/reader_pool.h"

#include "absl/status/statusor.h"

namespace terse {

ReaderPool::Lease ReaderPool::Take() {
  absl::MutexLock lock(&mutex_);
  if (idle_.empty() && open_ < kMost) {
    absl::StatusOr<std::unique_ptr<SqlDb>> another = open_another_();
    if (another.ok()) {
      ++open_;
      return Lease(this, *std::move(another));
    }
  }
  mutex_.Await(absl::Condition(this, &ReaderPool::IsIdle));
  // The one that was used last has its pages in memory.
  std::unique_ptr<SqlDb> db = std::move(idle_.back());
  idle_.pop_back();
  return Lease(this, std::move(db));
}

void ReaderPool::Return(std::unique_ptr<SqlDb> db) {
  absl::MutexLock lock(&mutex_);
  idle_.push_back(std::move(db));
}

}  // namespace terse
