// StoreLease in a row of a PostgreSQL database. Internal to storage/; documented in storage/SCHEMA.md.
//
// Its holder has an advisory lock beside it, which the server gives up with the holder's session. Whoever sees the lock
// go, on a session of its own that goes on, takes the lease without waiting for its end: the holder's process died, or
// has lost this server. That is as safe as waiting is. Nobody's clock or silence protects a run; Take itself does,
// which ends the sessions of all others and raises the term that every opening of a run must have (CheckHeld), and the
// opening raises the epoch that every transaction must have. Where the server itself went away with all its sessions,
// nobody saw the lock go, and the holder has the rest of its time to come back.
#ifndef TERSE_STORAGE_POSTGRES_LEASE_H_
#define TERSE_STORAGE_POSTGRES_LEASE_H_

#include <atomic>
#include <memory>
#include <string>

#include "storage/postgres_db.h"
#include "storage/store_lease.h"

namespace terse {

class PostgresLease final : public StoreLease {
 public:
  // `holder` is this coordinator's name, for people.
  PostgresLease(std::string address, std::string holder, absl::Duration duration);
  ~PostgresLease() override { Release(); }

  absl::StatusOr<std::string> Take() override;
  absl::Status Renew() override;
  void Release() override;
  absl::Duration duration() const override { return duration_; }

  // FAILED_PRECONDITION unless this coordinator has the lease (the same term of another one is of a history that was
  // lost with a server); nobody takes it before the end of the transaction on
  // `db`. Thread-safe.
  absl::Status CheckHeld(SqlDb& db) const;

 private:
  // Connects, and makes the table where it is missing, unless there is a connection that works.
  absl::Status Connect();
  // Calls `body` in a transaction. A connection that failed is not used again.
  absl::Status InTransaction(absl::FunctionRef<absl::Status(PostgresDb&)> body);
  // Takes the lock that shows that the holder of the lease of `term` lives, unless this session has it.
  absl::Status ShowLife(PostgresDb& db, int64_t term);
  // Whether this session has seen that lock earlier, and nobody has it now.
  absl::StatusOr<bool> HasVanished(PostgresDb& db, int64_t term);
  // Ends the sessions of all coordinators, which this one is none of yet: a transaction that a paused process has open
  // would lock rows for ever.
  static absl::Status EndSessions(PostgresDb& db);

  const std::string address_;
  const std::string holder_;
  const absl::Duration duration_;
  std::unique_ptr<PostgresDb> db_;
  std::atomic<int64_t> term_{0};  // the lease's number; 0: it was not taken
  // Terms, on this connection; 0: none.
  int64_t shown_ = 0;  // of the lock that it has
  int64_t seen_ = 0;   // of the lock that another one was seen to have
};

}  // namespace terse

#endif  // TERSE_STORAGE_POSTGRES_LEASE_H_
