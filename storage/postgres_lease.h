// StoreLease in a row of a PostgreSQL database. Internal to storage/; documented in storage/SCHEMA.md.
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

  // FAILED_PRECONDITION unless this coordinator has the lease; nobody takes it before the end of the transaction on
  // `db`. Thread-safe.
  absl::Status CheckHeld(SqlDb& db) const;

 private:
  // Connects, and makes the table where it is missing, unless there is a connection that works.
  absl::Status Connect();
  // Calls `body` in a transaction. A connection that failed is not used again.
  absl::Status InTransaction(absl::FunctionRef<absl::Status(PostgresDb&)> body);
  // Ends the sessions of all coordinators, which this one is none of yet: a transaction that a paused process has open
  // would lock rows for ever.
  static absl::Status EndSessions(PostgresDb& db);

  const std::string address_;
  const std::string holder_;
  const absl::Duration duration_;
  std::unique_ptr<PostgresDb> db_;
  std::atomic<int64_t> term_{0};  // the lease's number; 0: it was not taken
};

}  // namespace terse

#endif  // TERSE_STORAGE_POSTGRES_LEASE_H_
