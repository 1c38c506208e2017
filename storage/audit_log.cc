#include "storage/audit_log.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "storage/integrity.h"
#include "storage/schema.h"
#include "storage/sqlite_db.h"

namespace terse {
namespace {

constexpr MigrationStep kMigrations[] = {{R"sql(
CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  time_us INTEGER NOT NULL,
  ended_us INTEGER NOT NULL,
  who TEXT NOT NULL,
  certificate TEXT NOT NULL,
  address TEXT NOT NULL,
  action TEXT NOT NULL,
  run TEXT NOT NULL,
  detail TEXT NOT NULL,
  result TEXT NOT NULL,
  times INTEGER NOT NULL CHECK (times >= 1),
  checksum INTEGER NOT NULL AS (terse_checksum(id, time_us, ended_us, who, certificate, address, action, run, detail,
                                               result, times)) STORED
) STRICT;
CREATE INDEX audit_open ON audit (id) WHERE ended_us = 0;
)sql"}};

constexpr char kColumns[] =
    "SELECT id, time_us, ended_us, who, certificate, address, action, run, detail, result, times,"
    " checksum = terse_checksum(id, time_us, ended_us, who, certificate, address, action, run, detail, result, times)"
    " FROM audit ";

// At a boundary between characters of UTF-8.
absl::string_view Cut(absl::string_view text) {
  if (text.size() <= AuditLog::kMaxTextBytes) return text;
  size_t end = AuditLog::kMaxTextBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

// Kinds of records that others are counted in; beyond them all are forgotten, and counting begins anew.
constexpr size_t kMaxCounting = 4096;
constexpr int64_t kLeastShare = 64;
constexpr int64_t kCountKeptEveryUs = int64_t{3600} * 1'000'000;

// The fields that records counted together have in common.
std::string Likeness(const AuditRecord& record, bool coarsely) {
  if (coarsely) {
    return absl::StrJoin({absl::string_view("coarse"), absl::string_view(record.who), absl::string_view(record.action),
                          absl::string_view(record.result).substr(0, record.result.find(':'))},
                         "\n");
  }
  return absl::StrJoin(
      {absl::string_view(record.who), absl::string_view(record.certificate), absl::string_view(record.address),
       absl::string_view(record.action), absl::string_view(record.run), absl::string_view(record.detail),
       absl::string_view(record.result)},
      "\n");
}

absl::StatusOr<AuditRecord> RecordOf(const Statement& row, const std::string& path) {
  if (row.GetInt(11) != 1) {
    return absl::DataLossError(absl::StrCat("record ", row.GetInt(0), " of ", path, " is damaged"));
  }
  AuditRecord record;
  record.id = row.GetInt(0);
  record.time_us = row.GetInt(1);
  record.ended_us = row.GetInt(2);
  std::string* const texts[] = {&record.who, &record.certificate, &record.address, &record.action,
                                &record.run, &record.detail,      &record.result};
  int column = 3;
  for (std::string* text : texts) *text = std::string(row.GetText(column++));
  record.times = row.GetInt(column);
  return record;
}

absl::StatusOr<std::vector<AuditRecord>> AllRows(Statement& statement, const std::string& path) {
  std::vector<AuditRecord> records;
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return records;
    TERSE_ASSIGN_OR_RETURN(AuditRecord record, RecordOf(statement, path));
    records.push_back(std::move(record));
  }
}

absl::StatusOr<AuditRecord> FindRow(SqliteDb& db, int64_t id) {
  Statement statement = db.Prepare(absl::StrCat(kColumns, "WHERE id = ?"));
  TERSE_ASSIGN_OR_RETURN(std::vector<AuditRecord> found, AllRows(statement.Int(id), db.path()));
  if (found.empty()) return absl::NotFoundError(absl::StrCat("nothing with the id ", id, " is in the audit log"));
  return std::move(found.front());
}

absl::StatusOr<int64_t> Insert(SqliteDb& db, const AuditRecord& record, int64_t max_records) {
  int64_t id = 0;
  TERSE_RETURN_IF_ERROR(db.InTransaction([&]() -> absl::Status {
    {
      Statement newest = db.Prepare("SELECT coalesce(max(id), 0) FROM audit");
      TERSE_RETURN_IF_ERROR(newest.Step().status());
      id = newest.GetInt(0) + 1;
    }
    TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
                              .Int(id)
                              .Int(record.time_us)
                              .Int(record.ended_us)
                              .Text(Cut(record.who))
                              .Text(Cut(record.certificate))
                              .Text(Cut(record.address))
                              .Text(Cut(record.action))
                              .Text(Cut(record.run))
                              .Text(Cut(record.detail))
                              .Text(Cut(record.result))
                              .Int(record.times)
                              .Run());
    return db.Prepare("DELETE FROM audit WHERE id <= ?").Int(id - max_records).Run();
  }));
  return id;
}

absl::StatusOr<std::unique_ptr<SqliteDb>> OpenDatabase(const std::string& path, const std::string& vfs) {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDb> db, SqliteDb::Open(path, SqliteDb::Mode::kWriter, vfs));
  TERSE_RETURN_IF_ERROR(Migrate(*db, kMigrations));
  return db;
}

// Nobody needs the log to go on.
absl::Status WithRemedy(const absl::Status& status, const std::string& path) {
  if (!absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat("the audit log ", path,
                                          " is damaged; move it and what begins with its name away, and a new one is "
                                          "made at the next start"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& directory, int64_t max_records,
                                                         const std::string& vfs) {
  const std::string path = absl::StrCat(directory, "/", kAuditFile);
  absl::StatusOr<std::unique_ptr<SqliteDb>> db = OpenDatabase(path, vfs);
  if (!db.ok()) return WithRemedy(db.status(), path);
  return std::unique_ptr<AuditLog>(new AuditLog(*std::move(db), max_records));
}

absl::Status AuditLog::Check(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kAuditFile);
  {
    absl::StatusOr<std::unique_ptr<SqliteDb>> db = OpenDatabase(path, "");
    const absl::Status whole = db.ok() ? CheckPages(**db) : db.status();
    if (!whole.ok()) return WithRemedy(whole, path);
  }
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<AuditLog> log, Open(directory));
  return WithRemedy(log->Newest(kMaxRecords).status(), path);
}

AuditLog::AuditLog(std::unique_ptr<SqliteDb> db, int64_t max_records) : max_records_(max_records), db_(std::move(db)) {}

AuditLog::~AuditLog() = default;

absl::StatusOr<int64_t> AuditLog::Begin(const AuditRecord& record) {
  absl::MutexLock lock(&mutex_);
  AuditRecord begun = record;
  begun.ended_us = 0;
  begun.result.clear();
  return Write(begun);
}

absl::StatusOr<int64_t> AuditLog::Write(const AuditRecord& record) {
  TERSE_ASSIGN_OR_RETURN(const int64_t id, Insert(*db_, record, max_records_));
  ++kept_[std::string(Cut(record.who))];
  return id;
}

absl::StatusOr<bool> AuditLog::HasItsShare(const std::string& who, int64_t now_us) {
  if (kept_since_us_ == 0 || now_us - kept_since_us_ >= kCountKeptEveryUs) {
    std::map<std::string, int64_t> kept;
    Statement rows = db_->Prepare("SELECT who, count(*) FROM audit WHERE time_us > ? GROUP BY who");
    rows.Int(now_us - kKeptUs);
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) break;
      kept[std::string(rows.GetText(0))] = rows.GetInt(1);
    }
    kept_ = std::move(kept);
    kept_since_us_ = now_us;
  }
  return kept_[std::string(Cut(who))] > std::max(kLeastShare, max_records_ / kShareOfOne);
}

absl::optional<int64_t> AuditLog::CountingFor(const AuditRecord& record, bool coarsely) {
  if (counting_.size() >= kMaxCounting) counting_.clear();
  Counting& counting = counting_[Likeness(record, coarsely)];
  // One that was pruned is no longer there to count in.
  const bool is_there = counting.id > record.id - max_records_ / 2;
  if (counting.id != 0 && is_there && record.time_us - counting.time_us < kCountedTogetherUs) return counting.id;
  counting = {record.id, record.time_us};
  return absl::nullopt;
}

absl::StatusOr<AuditRecord> AuditLog::Settle(const AuditRecord& record, absl::optional<int64_t> counted_in) {
  SqliteDb& db = *db_;
  const absl::Status settled = db.InTransaction([&]() -> absl::Status {
    if (!counted_in.has_value()) {
      return db.Prepare("UPDATE audit SET ended_us = ?, result = ? WHERE id = ?")
          .Int(record.ended_us)
          .Text(record.result)
          .Int(record.id)
          .RunForOne("the record is gone");
    }
    TERSE_RETURN_IF_ERROR(db.Prepare("UPDATE audit SET ended_us = ?, times = times + ? WHERE id = ?")
                              .Int(record.ended_us)
                              .Int(record.times)
                              .Int(*counted_in)
                              .RunForOne("the record that others are counted in is gone"));
    return db.Prepare("DELETE FROM audit WHERE id = ?").Int(record.id).Run();
  });
  if (!settled.ok()) {
    counting_.clear();  // what it says need not be in the file
    return settled;
  }
  if (counted_in.has_value()) --kept_[record.who];
  return FindRow(db, counted_in.value_or(record.id));
}

absl::StatusOr<AuditRecord> AuditLog::End(int64_t id, int64_t ended_us, absl::string_view result) {
  absl::MutexLock lock(&mutex_);
  TERSE_ASSIGN_OR_RETURN(AuditRecord record, FindRow(*db_, id));
  if (record.ended_us != 0) {
    return absl::NotFoundError(absl::StrCat("nothing that began has the id ", id, " in the audit log"));
  }
  record.ended_us = ended_us;
  record.result = std::string(Cut(result));
  TERSE_ASSIGN_OR_RETURN(const bool coarsely, HasItsShare(record.who, record.time_us));
  return Settle(record, CountingFor(record, coarsely));
}

absl::StatusOr<AuditRecord> AuditLog::Add(AuditRecord record) {
  absl::MutexLock lock(&mutex_);
  TERSE_ASSIGN_OR_RETURN(const bool coarsely, HasItsShare(record.who, record.time_us));
  TERSE_ASSIGN_OR_RETURN(record.id, Write(record));
  const absl::optional<int64_t> counted_in = coarsely ? CountingFor(record, coarsely) : absl::nullopt;
  if (!counted_in.has_value()) return FindRow(*db_, record.id);
  return Settle(record, counted_in);
}

absl::StatusOr<std::vector<AuditRecord>> AuditLog::EndInterrupted(int64_t ended_us, absl::string_view result) {
  absl::MutexLock lock(&mutex_);
  SqliteDb& db = *db_;
  Statement statement = db.Prepare(absl::StrCat(kColumns, "WHERE ended_us = 0 ORDER BY id"));
  TERSE_ASSIGN_OR_RETURN(std::vector<AuditRecord> open, AllRows(statement, db.path()));
  if (open.empty()) return open;
  TERSE_RETURN_IF_ERROR(db.InTransaction([&] {
    return db.Prepare("UPDATE audit SET ended_us = ?, result = ? WHERE ended_us = 0")
        .Int(ended_us)
        .Text(Cut(result))
        .Run();
  }));
  for (AuditRecord& record : open) {
    record.ended_us = ended_us;
    record.result = std::string(Cut(result));
  }
  return open;
}

absl::StatusOr<std::vector<AuditRecord>> AuditLog::Newest(int64_t limit) {
  absl::MutexLock lock(&mutex_);
  Statement statement = db_->Prepare(absl::StrCat(kColumns, "ORDER BY id DESC LIMIT ?"));
  TERSE_ASSIGN_OR_RETURN(std::vector<AuditRecord> records, AllRows(statement.Int(limit), db_->path()));
  std::reverse(records.begin(), records.end());
  return records;
}

}  // namespace terse
