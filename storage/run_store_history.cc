// The stored histories of clients' applied updates, from which the next packed update is unpacked.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/integrity.h"
#include "storage/sql_run_store.h"

namespace terse {
namespace {

// How many updates the client's history is made of.
absl::StatusOr<int64_t> CountHistory(SqlDb& db, int64_t client) {
  Statement row = db.Prepare(
      "SELECT COALESCE(MAX(count), 0) FROM (SELECT messages AS count FROM histories WHERE client = ?1 UNION ALL "
      "SELECT MAX(number) FROM history_log WHERE client = ?1) AS counts");
  TERSE_RETURN_IF_ERROR(row.Int(client).Step().status());
  return row.GetInt(0);
}

absl::Status DeleteHistory(SqlDb& db, int64_t client) {
  TERSE_RETURN_IF_ERROR(db.Prepare("DELETE FROM histories WHERE client = ?").Int(client).Run());
  return db.Prepare("DELETE FROM history_log WHERE client = ?").Int(client).Run();
}

}  // namespace

absl::Status run_store_internal::InsertHistory(SqlDb& db, int64_t round, const HistoryMessage& message) {
  TERSE_ASSIGN_OR_RETURN(const int64_t count, CountHistory(db, message.client));
  return db
      .Prepare(
          "INSERT INTO history_log (client, number, message) "
          "SELECT client, ?, ? FROM updates WHERE round = ? AND client = ?")
      .Int(count + 1)
      .Blob(message.message)
      .Int(round)
      .Int(message.client)
      .RunForOne(absl::StrCat("round ", round, " cannot commit: it chose no update of client ", message.client,
                              " that its history could count"));
}

absl::Status run_store_internal::ResetClient(SqlDb& db, int64_t client) {
  if (!Mutated(Mutant::kKeepHistory)) TERSE_RETURN_IF_ERROR(DeleteHistory(db, client));
  return db.Prepare("UPDATE clients SET resets = resets + 1 WHERE id = ?")
      .Int(client)
      .RunForOne(absl::StrCat("there is no client ", client));
}

absl::Status SqlRunStore::RecordReset(int64_t client) {
  return Write([&](SqlDb& db) { return run_store_internal::ResetClient(db, client); });
}

absl::StatusOr<HistoryRecord> SqlRunStore::ReadHistory(int64_t client) {
  HistoryRecord history;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    static const auto& state_query = *new SqlText(SqlCat(
        {"SELECT messages, state, ", HasChecksum("histories", "histories"), " FROM histories WHERE client = ?"}));
    Statement row = db.Prepare(state_query);
    TERSE_ASSIGN_OR_RETURN(const bool compacted, row.Int(client).Step());
    if (compacted) {
      TERSE_RETURN_IF_ERROR(ExpectChecksum(db, row, 2, "histories"));
      history.messages = row.GetInt(0);
      history.state = std::string(row.GetBlob(1));
    }
    static const auto& log_query =
        *new SqlText(SqlCat({"SELECT number, message, ", HasChecksum("history_log", "history_log"),
                             " FROM history_log WHERE client = ? ORDER BY number"}));
    Statement log = db.Prepare(log_query);
    log.Int(client);
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool more, log.Step());
      if (!more) return absl::OkStatus();
      TERSE_RETURN_IF_ERROR(ExpectChecksum(db, log, 2, "history_log"));
      if (log.GetInt(0) != history.count() + 1) {
        return absl::DataLossError(absl::StrCat(db.place(), " is damaged: update ", history.count() + 1, " of client ",
                                                client, "'s history is missing", db.remedy()));
      }
      history.log.emplace_back(log.GetBlob(1));
    }
  }));
  return history;
}

absl::Status SqlRunStore::ForgetHistory(int64_t client) {
  return Write([&](SqlDb& db) { return DeleteHistory(db, client); });
}

absl::Status SqlRunStore::CompactHistory(int64_t client, int64_t messages, absl::string_view state) {
  return Write([&](SqlDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const int64_t count, CountHistory(db, client));
    if (messages < 1 || messages != count) {
      return absl::FailedPreconditionError(
          absl::StrCat("the history of client ", client, " is one of ", count, " updates, not ", messages));
    }
    TERSE_RETURN_IF_ERROR(DeleteHistory(db, client));
    return db.Prepare("INSERT INTO histories (client, messages, state) VALUES (?, ?, ?)")
        .Int(client)
        .Int(messages)
        .Blob(state)
        .Run();
  });
}

}  // namespace terse
