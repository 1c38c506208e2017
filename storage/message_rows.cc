#include "storage/message_rows.h"

#include "core/status.h"

namespace terse {
namespace {

SegmentPlace PlaceOf(const Statement& row, int column) {
  return {row.GetInt(column), row.GetInt(column + 1), row.GetInt(column + 2), row.GetId(column + 3)};
}

}  // namespace

absl::StatusOr<StoredMessage> StoreMessage(SqlDb& db, LargeMessages& large, absl::string_view message) {
  StoredMessage stored;
  if (static_cast<int64_t>(message.size()) <= large.inline_bytes()) {
    stored.message = message;
    return stored;
  }
  TERSE_ASSIGN_OR_RETURN(stored.place, large.Append(db, message));
  return stored;
}

Statement& BindMessage(Statement& statement, const StoredMessage& stored) {
  if (!stored.place.has_value()) return statement.Null().Null().Null().Null().Blob(stored.message);
  const SegmentPlace& place = *stored.place;
  return statement.Int(place.segment).Int(place.offset).Int(place.length).Id(place.hash).Null();
}

absl::StatusOr<std::string> MessageOf(SqlDb& db, const Statement& row, int column, LargeMessages& large) {
  if (row.IsNull(column)) return std::string(row.GetBlob(column + kMessageColumnCount - 1));
  return large.Read(db, PlaceOf(row, column));
}

absl::StatusOr<SegmentEnds> NamedSegments(SqlDb& db, int64_t version) {
  SegmentEnds ends;
  Statement rows = db.Prepare(
      "SELECT segment, MAX(\"offset\" + length) FROM ("
      "SELECT segment, \"offset\", length FROM downstream_log WHERE segment IS NOT NULL AND version >= ?1 UNION ALL "
      "SELECT segment, \"offset\", length FROM aggregates WHERE segment IS NOT NULL AND version >= ?1) AS places "
      "GROUP BY segment");
  rows.Int(version);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return ends;
    ends[rows.GetInt(0)] = rows.GetInt(1);
  }
}

absl::Status ForEachPlace(SqlDb& db, absl::FunctionRef<absl::Status(const SegmentPlace&)> visit) {
  Statement rows = db.Prepare(
      "SELECT segment, \"offset\", length, hash FROM downstream_log WHERE segment IS NOT NULL UNION ALL "
      "SELECT segment, \"offset\", length, hash FROM aggregates WHERE segment IS NOT NULL ORDER BY 1, 2");
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(visit(PlaceOf(rows, 0)));
  }
}

}  // namespace terse
