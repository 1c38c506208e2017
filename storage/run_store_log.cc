// Reads of the messages of commits: the downstream log, and what repeats a server's step.
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/integrity.h"
#include "storage/message_rows.h"
#include "storage/sql_run_store.h"

namespace terse {
namespace {

// Why (after, up_to] is not in the log.
absl::Status LogGap(SqlDb& db, int64_t after, int64_t up_to) {
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
      absl::StrCat(db.place(), " lacks a log message between versions ", after, " and ", up_to, db.remedy()));
}

// Rows that are asked for at once, which bounds the memory of an answer that comes as a whole.
constexpr int64_t kLogRows = 64;

// A part of the log as far as it was read.
struct LogPart {
  std::vector<LogMessage> messages;
  int64_t last = 0;        // version of the newest of them
  int64_t bytes_left = 0;  // for the next ones
  bool is_full = false;    // the next one does not fit
};

// Reads the next rows up to `up_to`. Returns whether there were as many as were asked for, each following the one
// before.
absl::StatusOr<bool> ReadLogRows(SqlDb& db, LargeMessages& large, int64_t up_to, LogPart* part) {
  static const auto& query = *new SqlText(SqlCat(
      {"SELECT version, model_hash, ", kMessageBytes, ", ", HasChecksum("downstream_log", "downstream_log"), ", ",
       kMessageColumns, " FROM downstream_log WHERE version > ? AND version <= ? ORDER BY version LIMIT ?"}));
  Statement rows = db.Prepare(query);
  rows.Int(part->last).Int(up_to).Int(kLogRows);
  for (int64_t i = 0; i < kLogRows; ++i) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row || rows.GetInt(0) != part->last + 1) return false;
    const int64_t bytes = rows.GetInt(2);
    part->is_full = !part->messages.empty() && bytes > part->bytes_left;
    if (part->is_full) return true;
    TERSE_RETURN_IF_ERROR(ExpectChecksum(db, rows, 3, "downstream_log"));
    part->bytes_left -= bytes;
    TERSE_ASSIGN_OR_RETURN(std::string message, MessageOf(db, rows, 4, large));
    part->messages.push_back({++part->last, rows.GetId(1), std::move(message)});
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<LogMessage>> SqlRunStore::ReadLogPart(int64_t after, int64_t up_to, int64_t max_bytes) {
  LogPart part;
  part.last = after;
  part.bytes_left = max_bytes;
  const std::shared_ptr<void> hold = messages_->Hold();
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    bool more = after >= 0;
    while (more && part.last < up_to && !part.is_full) {
      TERSE_ASSIGN_OR_RETURN(more, ReadLogRows(db, *messages_, up_to, &part));
    }
    return part.is_full || (after >= 0 && part.last == up_to) ? absl::OkStatus() : LogGap(db, after, up_to);
  }));
  return std::move(part.messages);
}

absl::StatusOr<std::string> SqlRunStore::ReadAggregate(int64_t version) {
  std::string aggregate;
  const std::shared_ptr<void> hold = messages_->Hold();
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    static const auto& query = *new SqlText(SqlCat({"SELECT ", HasChecksum("aggregates", "aggregates"), ", ",
                                                    kMessageColumns, " FROM aggregates WHERE version = ?"}));
    Statement row = db.Prepare(query);
    TERSE_ASSIGN_OR_RETURN(const bool found, row.Int(version).Step());
    if (!found) return absl::NotFoundError(absl::StrCat("the updates that led to version ", version, " are not kept"));
    TERSE_RETURN_IF_ERROR(ExpectChecksum(db, row, 0, "aggregates"));
    TERSE_ASSIGN_OR_RETURN(aggregate, MessageOf(db, row, 1, *messages_));
    return absl::OkStatus();
  }));
  return aggregate;
}

absl::StatusOr<int64_t> SqlRunStore::LogBytes(int64_t after) {
  int64_t bytes = 0;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const Head head, run_store_internal::SelectHead(db));
    static const auto& query = *new SqlText(SqlCat({"SELECT COUNT(*), CAST(COALESCE(SUM(", kMessageBytes,
                                                    "), 0) AS BIGINT) FROM downstream_log WHERE version > ?"}));
    Statement sum = db.Prepare(query);
    TERSE_RETURN_IF_ERROR(sum.Int(after).Step().status());
    bytes = sum.GetInt(1);
    if (after >= 0 && sum.GetInt(0) == head.version - after) return absl::OkStatus();
    return LogGap(db, after, head.version);
  }));
  return bytes;
}

}  // namespace terse
