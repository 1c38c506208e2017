// The coordinator's audit log: what callers did and what they were refused, in DIR/audit.sqlite beside the runs
// (storage/SCHEMA.md, section 3).
#ifndef TERSE_STORAGE_AUDIT_LOG_H_
#define TERSE_STORAGE_AUDIT_LOG_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"

namespace terse {

class SqliteDb;

inline constexpr char kAuditFile[] = "audit.sqlite";

struct AuditRecord {
  int64_t id = 0;           // the log gives it; greater than those of all earlier records
  int64_t time_us = 0;      // when it began; of those that are counted together, the first
  int64_t ended_us = 0;     // 0: it has not; of those that are counted together, the last
  std::string who;          // "operator ada"; "socket" and "cleartext" where there are no certificates
  std::string certificate;  // its serial number; empty: none
  std::string address;      // the caller's host, without its port, which each connection has another of; empty: unknown
  std::string action;       // the method, without its service
  std::string run;          // as the caller named it
  std::string detail;       // what else was asked for
  std::string result;       // "ok", or the error's code and text; empty: it has not ended
  int64_t times = 1;        // more than one: so many are counted together
};

// Holds the newest `max_records`; older ones go as new ones come. No caller can push records out by noise: a call that
// is repeated with the same result within kCountedTogetherUs is counted in one record, and a caller with its share of
// the log (kShareOfOne) within kKeptUs has its calls counted together by action and kind of result alone. Each text is
// cut to kMaxTextBytes, so that the file stays below some 200 MB. Thread-safe; every change is durable when its call
// returns. Statuses are those of SqliteDb (storage/sqlite_db.h); after UNKNOWN, a failed sync, nothing is written any
// more.
class AuditLog {
 public:
  static constexpr int64_t kMaxRecords = 100'000;
  static constexpr size_t kMaxTextBytes = 256;
  static constexpr int64_t kCountedTogetherUs = int64_t{3600} * 1'000'000;
  static constexpr int64_t kKeptUs = int64_t{30} * 24 * 3600 * 1'000'000;
  static constexpr int64_t kShareOfOne = 16;  // a sixteenth

  // Opens or makes the log. FAILED_PRECONDITION when a newer program wrote it; DATA_LOSS with what to do when it is
  // damaged. `vfs` as in SqliteDb::Open.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& directory, int64_t max_records = kMaxRecords,
                                                        const std::string& vfs = "");
  ~AuditLog();

  // Whether Open opens the log, its pages fit together and each record is what was written, with the statuses of Open.
  // Reads all of it, and may write.
  static absl::Status Check(const std::string& directory);

  // Writes a record that begins now, whose end is told later, and returns its id.
  absl::StatusOr<int64_t> Begin(const AuditRecord& record) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends a record that began and returns it whole. A record that is counted in an earlier one frees its id, and the
  // earlier one is returned, with its new number. NOT_FOUND when it is not there or has ended.
  absl::StatusOr<AuditRecord> End(int64_t id, int64_t ended_us, absl::string_view result) ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes a record that has ended, and may stand for several calls, and returns it with its id. When the caller has
  // its share of the log, the record is counted as at End.
  absl::StatusOr<AuditRecord> Add(AuditRecord record) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends all records that an earlier process left begun and returns them, oldest first.
  absl::StatusOr<std::vector<AuditRecord>> EndInterrupted(int64_t ended_us, absl::string_view result)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the newest `limit` records, oldest first. DATA_LOSS when a record is not what was written.
  absl::StatusOr<std::vector<AuditRecord>> Newest(int64_t limit) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A record that others are counted in.
  struct Counting {
    int64_t id = 0;
    int64_t time_us = 0;
  };

  AuditLog(std::unique_ptr<SqliteDb> db, int64_t max_records);
  // Inserts a record and counts it.
  absl::StatusOr<int64_t> Write(const AuditRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a record of the file, in its own row or in the record that it is counted in.
  absl::StatusOr<AuditRecord> Settle(const AuditRecord& record, absl::optional<int64_t> counted_in)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the caller has its share of the log.
  absl::StatusOr<bool> HasItsShare(const std::string& who, int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the record that one like this is counted in; remembers this one when there is none.
  absl::optional<int64_t> CountingFor(const AuditRecord& record, bool coarsely) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t max_records_;
  absl::Mutex mutex_;
  std::map<std::string, Counting> counting_ ABSL_GUARDED_BY(mutex_);  // by what makes records alike
  std::map<std::string, int64_t> kept_ ABSL_GUARDED_BY(mutex_);       // records within kKeptUs, by who
  int64_t kept_since_us_ ABSL_GUARDED_BY(mutex_) = 0;                 // when that was counted in the file
  const std::unique_ptr<SqliteDb> db_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace terse

#endif  // TERSE_STORAGE_AUDIT_LOG_H_
