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
#include "core/file_system.h"
#include "storage/segments.h"
#include "storage/sqlite_db.h"

namespace terse {

// SQL: the columns of a message, and the number of its bytes, which reads none of them.
inline constexpr char kMessageColumns[] = "segment, offset, length, hash, message";
inline constexpr int kMessageColumnCount = 5;
inline constexpr char kMessageBytes[] = "COALESCE(length, length(message))";

// A message as a row has it.
struct StoredMessage {
  absl::optional<SegmentPlace> place;  // nullopt: it stands in the row
  absl::string_view message;           // empty where it has a place; lives as long as the call
};

// Appends a message to the segments unless it is small enough for its row. Statuses of Segments::Append.
absl::StatusOr<StoredMessage> StoreMessage(Segments& segments, absl::string_view message);

// Binds the next five parameters of a statement, kMessageColumns. The message must live until the statement is
// destroyed.
Statement& BindMessage(Statement& statement, const StoredMessage& stored);

// Reads the message whose kMessageColumns begin at `column`, from the row or from its place in `directory`. The caller
// has checked the row, and holds the segments. Statuses of ReadSegment.
absl::StatusOr<std::string> MessageOf(const Statement& row, int column, FileSystem& files,
                                      const std::string& directory);

// Returns the segments that rows of versions from `version` on name. Statuses of SqliteDb.
absl::StatusOr<SegmentEnds> NamedSegments(SqliteDb& db, int64_t version = 0);

// Calls `visit` with every place that a row names, in their order, until it fails. Statuses of SqliteDb and of `visit`.
absl::Status ForEachPlace(SqliteDb& db, absl::FunctionRef<absl::Status(const SegmentPlace&)> visit);

}  // namespace terse

#endif  // TERSE_STORAGE_MESSAGE_ROWS_H_
