// Reads of the messages of commits: the downstream log, and what repeats a server's step.
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/integrity.h"
#include "storage/message_rows.h"
#include "storage/sqlite_run_store.h"

namespace terse {
namespace {

// Why (after, up_to] is not in the log.
absl::Status LogGap(SqliteDb& db, int64_t after, int64_t up_to) {
  TERSE_ASSIGN_OR_RETURN(const Head head, run_store_internal::SelectHead(db));
  if (after < 0 || after > up_to || up_to > head.version) {
    return absl::InvalidArgumentError(
        absl::StrCat("no log leads from version ", after, " to ", up_to, "; the head is ", head.version));
  }
  // The log always leads from the oldest checkpoint to the head; damage can make rows vanish.
  Statement oldest = db.Prepare(
      "SELECT COALESCE((SELECT MIN(version) - 1 FROM downstream_log), ?1), "
      "COALESCE((SELECT MIN(version) FROM checkpoints), ?1)");
  TERSE_RETURN_IF_ERROR(oldest.Int(head.version).Step().status());
  const int64_t begin = oldest.GetInt(0);
  if (after < begin && begin <= oldest.GetInt(1)) {
    return absl::OutOfRangeError(absl::StrCat("the log no longer reaches back to version ", after, "; it begins after ",
                                              begin, ": use a checkpoint"));
  }
  return absl::DataLossError(
      absl::StrCat(db.path(), " lacks a log message between versions ", after, " and ", up_to, kDatabaseRemedy));
}

}  // namespace

absl::StatusOr<std::vector<LogMessage>> SqliteRunStore::ReadLogPart(int64_t after, int64_t up_to, int64_t max_bytes) {
  std::vector<LogMessage> messages;
  const Segments::Hold hold(*segments_);
  TERSE_RETURN_IF_ERROR(Read([&](SqliteDb& db) -> absl::Status {
    static const auto& query = *new std::string(absl::StrCat(
        "SELECT version, model_hash, ", kMessageBytes, ", ", HasChecksum("downstream_log", "downstream_log"), ", ",
        kMessageColumns, " FROM downstream_log WHERE version > ? AND version <= ? ORDER BY version"));
    Statement rows = db.Prepare(query);
    rows.Int(after).Int(up_to);
    int64_t last = after;
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row || rows.GetInt(0) != last + 1) break;
      const int64_t bytes = rows.GetInt(2);
      if (!messages.empty() && bytes > max_bytes) return absl::OkStatus();
      TERSE_RETURN_IF_ERROR(ExpectChecksum(db, rows, 3, "downstream_log"));
      max_bytes -= bytes;
      TERSE_ASSIGN_OR_RETURN(std::string message, MessageOf(rows, 4, files_, segments_->directory()));
      messages.push_back({++last, rows.GetId(1), std::move(message)});
    }
    return after >= 0 && last == up_to ? absl::OkStatus() : LogGap(db, after, up_to);
  }));
  return messages;
}

absl::StatusOr<std::string> SqliteRunStore::ReadAggregate(int64_t version) {
  std::string aggregate;
  const Segments::Hold hold(*segments_);
  TERSE_RETURN_IF_ERROR(Read([&](SqliteDb& db) -> absl::Status {
    static const auto& query = *new std::string(absl::StrCat("SELECT ", HasChecksum("aggregates", "aggregates"), ", ",
                                                             kMessageColumns, " FROM aggregates WHERE version = ?"));
    Statement row = db.Prepare(query);
    TERSE_ASSIGN_OR_RETURN(const bool found, row.Int(version).Step());
    if (!found) return absl::NotFoundError(absl::StrCat("the updates that led to version ", version, " are not kept"));
    TERSE_RETURN_IF_ERROR(ExpectChecksum(db, row, 0, "aggregates"));
    TERSE_ASSIGN_OR_RETURN(aggregate, MessageOf(row, 1, files_, segments_->directory()));
    return absl::OkStatus();
  }));
  return aggregate;
}

absl::StatusOr<int64_t> SqliteRunStore::LogBytes(int64_t after) {
  int64_t bytes = 0;
  TERSE_RETURN_IF_ERROR(Read([&](SqliteDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const Head head, run_store_internal::SelectHead(db));
    static const auto& query = *new std::string(
        absl::StrCat("SELECT COUNT(*), COALESCE(SUM(", kMessageBytes, "), 0) FROM downstream_log WHERE version > ?"));
    Statement sum = db.Prepare(query);
    TERSE_RETURN_IF_ERROR(sum.Int(after).Step().status());
    bytes = sum.GetInt(1);
    if (after >= 0 && sum.GetInt(0) == head.version - after) return absl::OkStatus();
    return LogGap(db, after, head.version);
  }));
  return bytes;
}

}  // namespace terse
