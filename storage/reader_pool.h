// Reading connections to one database. Internal to storage/.
#ifndef TERSE_STORAGE_READER_POOL_H_
#define TERSE_STORAGE_READER_POOL_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "storage/sql_db.h"

namespace terse {

// Lends connections, each to one caller at a time: an administrator who reads the whole ledger does not hold up the
// dashboard. It opens up to kMost of them as they are needed; beyond that, and where the database cannot be opened any
// more because its directory was renamed, a reader waits for another one. Thread-safe.
class ReaderPool {
 public:
  // A connection, which goes back when this is destroyed. The pool outlives it.
  class Lease {
   public:
    Lease(ReaderPool* pool, std::unique_ptr<SqlDb> db) : pool_(pool), db_(std::move(db)) {}
    ~Lease() {
      if (db_ != nullptr) pool_->Return(std::move(db_));
    }
    Lease(Lease&&) = default;
    SqlDb& db() const { return *db_; }

   private:
    ReaderPool* pool_;
    std::unique_ptr<SqlDb> db_;
  };

  using Opener = std::function<absl::StatusOr<std::unique_ptr<SqlDb>>()>;

  // `first` is a reader of the database; `open` opens others.
  ReaderPool(std::unique_ptr<SqlDb> first, Opener open) : open_another_(std::move(open)) {
    idle_.push_back(std::move(first));
  }

  Lease Take() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr int kMost = 8;

  bool IsIdle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !idle_.empty(); }
  void Return(std::unique_ptr<SqlDb> db) ABSL_LOCKS_EXCLUDED(mutex_);

  const Opener open_another_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<SqlDb>> idle_ ABSL_GUARDED_BY(mutex_);
  int open_ ABSL_GUARDED_BY(mutex_) = 1;  // idle or lent
};

}  // namespace terse

#endif  // TERSE_STORAGE_READER_POOL_H_
