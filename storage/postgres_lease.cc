#include "storage/postgres_lease.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/postgres_schema.h"

namespace terse {
namespace {

// The lease has a schema of its own beside those of runs (kSchemaPrefix, postgres_run_stores.cc).
constexpr char kLeaseSchema[] = "terse";
constexpr char kTable[] =
    "CREATE SCHEMA IF NOT EXISTS terse; "
    "CREATE TABLE IF NOT EXISTS lease (id BIGINT PRIMARY KEY CHECK (id = 1), term BIGINT NOT NULL, holder TEXT NOT "
    "NULL, "
    "expires_us BIGINT NOT NULL); "
    "INSERT INTO lease VALUES (1, 0, '', 0) ON CONFLICT (id) DO NOTHING";
// The server's clock, in microseconds.
constexpr char kNow[] = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)";

// Advisory locks of this kind ("TRSL") belong to the sessions of those who have the lease, and are numbered by its
// term.
constexpr int64_t kHolders = 0x5452534c;

constexpr char kTaken[] =
    "another process took the lease of the store, because this one did not renew it in time, or lost the "
    "connection on which it does";

int64_t LockNumber(int64_t term) { return term & 0x7fffffff; }

}  // namespace

PostgresLease::PostgresLease(std::string address, std::string holder, absl::Duration duration)
    : address_(std::move(address)), holder_(std::move(holder)), duration_(duration) {}

absl::Status PostgresLease::Connect() {
  if (db_ != nullptr) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<PostgresDb> db,
                         PostgresDb::Open(address_, kLeaseSchema, PostgresDb::Mode::kLease));
  TERSE_RETURN_IF_ERROR(db->InTransaction([&]() -> absl::Status {
    TERSE_RETURN_IF_ERROR(LockMigrations(*db));
    return db->Script(kTable);
  }));
  db_ = std::move(db);
  shown_ = seen_ = 0;
  return absl::OkStatus();
}

absl::Status PostgresLease::InTransaction(absl::FunctionRef<absl::Status(PostgresDb&)> body) {
  TERSE_RETURN_IF_ERROR(Connect());
  absl::Status status = db_->InTransaction([&] { return body(*db_); });
  if (absl::IsUnavailable(status)) db_ = nullptr;
  return status;
}

absl::Status PostgresLease::ShowLife(PostgresDb& db, int64_t term) {
  if (shown_ == term) return absl::OkStatus();
  Statement lock = db.Prepare("SELECT pg_try_advisory_lock(CAST(? AS INT), CAST(? AS INT))");
  TERSE_ASSIGN_OR_RETURN(const bool row, lock.Int(kHolders).Int(LockNumber(term)).Step());
  // Where an earlier session of this process still has it, the next renewal tries again.
  if (row && lock.GetInt(0) != 0) shown_ = term;
  return absl::OkStatus();
}

absl::StatusOr<bool> PostgresLease::HasVanished(PostgresDb& db, int64_t term) {
  Statement sign = db.Prepare(
      "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND CAST(classid AS BIGINT) = ? AND "
      "CAST(objid AS BIGINT) = ? AND database = (SELECT oid FROM pg_database WHERE datname = current_database())");
  TERSE_ASSIGN_OR_RETURN(const bool lives, sign.Int(kHolders).Int(LockNumber(term)).Step());
  const bool was_seen = seen_ == term;
  if (lives) seen_ = term;
  return was_seen && !lives;
}

absl::StatusOr<std::string> PostgresLease::Take() {
  std::string holder;
  int64_t term = 0;
  TERSE_RETURN_IF_ERROR(InTransaction([&](PostgresDb& db) -> absl::Status {
    {
      Statement row = db.Prepare(absl::StrCat("SELECT term, holder, expires_us > ", kNow, " FROM lease FOR UPDATE"));
      TERSE_ASSIGN_OR_RETURN(const bool found, row.Step());
      if (!found) return absl::DataLossError(absl::StrCat(db.place(), " has no row of the lease", db.remedy()));
      if (row.GetInt(2) != 0) {
        TERSE_ASSIGN_OR_RETURN(const bool has_vanished, HasVanished(db, row.GetInt(0)));
        if (!has_vanished) holder = std::string(row.GetText(1));
      }
      term = row.GetInt(0) + 1;
    }
    if (!holder.empty()) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(EndSessions(db));
    TERSE_RETURN_IF_ERROR(ShowLife(db, term));
    return db.Prepare(absl::StrCat("UPDATE lease SET term = ?, holder = ?, expires_us = ", kNow, " + ?"))
        .Int(term)
        .Text(holder_)
        .Int(absl::ToInt64Microseconds(duration_))
        .Run();
  }));
  if (holder.empty()) term_ = term;
  return holder;
}

absl::Status PostgresLease::EndSessions(PostgresDb& db) {
  Statement ended = db.Prepare(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND "
      "application_name = ?");
  ended.Text(kStoreApplication);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, ended.Step());
    if (!row) return absl::OkStatus();
  }
}

absl::Status PostgresLease::Renew() {
  return InTransaction([&](PostgresDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(
        db.Prepare(absl::StrCat("UPDATE lease SET expires_us = ", kNow, " + ? WHERE term = ? AND holder = ?"))
            .Int(absl::ToInt64Microseconds(duration_))
            .Int(term_)
            .Text(holder_)
            .RunForOne(kTaken));
    return ShowLife(db, term_);
  });
}

absl::Status PostgresLease::CheckHeld(SqlDb& db) const {
  Statement row = db.Prepare("SELECT 1 FROM terse.lease WHERE term = ? AND holder = ? FOR SHARE");
  TERSE_ASSIGN_OR_RETURN(const bool held, row.Int(term_).Text(holder_).Step());
  return held ? absl::OkStatus() : absl::FailedPreconditionError(kTaken);
}

void PostgresLease::Release() {
  const int64_t term = term_.exchange(0);
  if (term == 0) return;
  InTransaction([&](PostgresDb& db) {
    return db.Prepare("UPDATE lease SET expires_us = 0 WHERE term = ? AND holder = ?").Int(term).Text(holder_).Run();
  }).IgnoreError();
}

}  // namespace terse
