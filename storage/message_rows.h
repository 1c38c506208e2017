// Messages in rows of the database, and beside it: the columns that `downstream_log` and `aggregates` share. Internal
// to storage/; documented in storage/SCHEMA.md.
#ifndef TERSE_STORAGE_MESSAGE_ROWS_H_
#define TERSE_STORAGE_MESSAGE_ROWS_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "storage/large_messages.h"
#include "storage/segments.h"
#include "storage/sql_db.h"

namespace terse {

// SQL: the columns of a message, and the number of its bytes, which reads none of them.
inline constexpr char kMessageColumns[] = "segment, \"offset\", length, hash, message";
inline constexpr int kMessageColumnCount = 5;
inline constexpr char kMessageBytes[] = "COALESCE(length, length(message))";

// A message as a row has it.
struct StoredMessage {
  absl::optional<SegmentPlace> place;  // nullopt: it stands in the row
  absl::string_view message;           // empty where it has a place; lives as long as the call
};

// Appends a message to the large ones unless it is small enough for its row, as a part of the transaction on `db`.
// Statuses of LargeMessages::Append.
absl::StatusOr<StoredMessage> StoreMessage(SqlDb& db, LargeMessages& large, absl::string_view message);

// Binds the next five parameters of a statement, kMessageColumns. The message must live until the statement is
// destroyed.
Statement& BindMessage(Statement& statement, const StoredMessage& stored);

// Reads the message whose kMessageColumns begin at `column`, from the row of `db` or from its place. The caller has
// checked the row, and has a hold. Statuses of LargeMessages::Read.
absl::StatusOr<std::string> MessageOf(SqlDb& db, const Statement& row, int column, LargeMessages& large);

// Returns the segments that rows of versions from `version` on name. Statuses of SqlDb.
absl::StatusOr<SegmentEnds> NamedSegments(SqlDb& db, int64_t version = 0);

// Calls `visit` with every place that a row names, in their order, until it fails. Statuses of SqlDb and of `visit`.
absl::Status ForEachPlace(SqlDb& db, absl::FunctionRef<absl::Status(const SegmentPlace&)> visit);

}  // namespace terse

#endif  // TERSE_STORAGE_MESSAGE_ROWS_H_
