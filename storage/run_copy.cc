#include "storage/run_copy.h"

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/status.h"
#include "storage/message_rows.h"

namespace terse {
namespace {

// A table, with the columns that are copied. Each has its kind behind it: i an integer, r a real number, t a text, b
// bytes. A row is inserted behind those that it refers to.
struct CopiedTable {
  const char* name;
  const char* columns;
  bool has_message = false;  // a message's columns (kMessageColumns) come last
};
constexpr CopiedTable kCopiedTables[] = {
    {"runs", "id i,name t,lineage b,config b,parameters i,state t,created_us i,reason t"},
    {"head", "id i,version i,model_hash b,epoch i"},
    {"start", "id i,model_hash b"},
    {"relay", "id i,facts b"},
    {"rounds",
     "id i,state t,base_version i,opened_us i,closed_us i,settled_us i,updates i,train_us_max i,train_loss r,"
     "accuracy r,test_loss r"},
    {"clients",
     "id i,name t,last_applied b,first_seen_us i,last_seen_us i,updates_applied i,updates_not_applied i,resets i,"
     "samples i,reliability r,failures i,set_aside_until_us i,set_aside_reason t"},
    {"below", "client i,clients i,payload_up i,wire_up i,payload_down i,wire_down i"},
    {"updates",
     "round i,client i,update_id b,prev_applied b,content_hash b,payload_bytes i,train_us i,loss r,samples i"},
    {"first_updates", "update_id b,round i,client i"},
    {"refused", "update_id b,round i,client i,reason t"},
    {"scores", "round i,top5 r,perplexity r"},
    {"plans", "round i,local_steps i,choice i,first_iteration i,why t"},
    {"metrics", "round i,kind i,name t,mean r,clients i,samples i"},
    {"update_metrics", "round i,client i,metrics b"},
    {"round_totals",
     "round i,update_bytes i,dense_up i,payload_up i,wire_up i,dense_down i,payload_down i,wire_down i"},
    {"client_totals", "block i,sums b"},
    {"ledger", "id i,round i,sums b"},
    {"events", "id i,time_us i,kind t,round i,client i,detail t"},
    {"histories", "client i,messages i,state b"},
    {"history_log", "client i,number i,message b"},
    {"retention", "id i,rounds i,events i,folded_round i"},
    {"downstream_log", "version i,model_hash b", true},
    {"aggregates", "version i", true}};

// Rows that PostgreSQL sends at once.
constexpr int kFetchedRows = 64;

struct Column {
  std::string name;
  char kind = 'i';
};

std::vector<Column> ColumnsOf(const CopiedTable& table) {
  std::vector<Column> columns;
  for (const absl::string_view column : absl::StrSplit(table.columns, ',')) {
    const std::vector<std::string> parts = absl::StrSplit(column, ' ');
    columns.push_back({parts[0], parts[1][0]});
  }
  return columns;
}

std::string NamesOf(const CopiedTable& table, const std::vector<Column>& columns) {
  const std::string names =
      absl::StrJoin(columns, ", ", [](std::string* out, const Column& column) { *out += column.name; });
  return table.has_message ? absl::StrCat(names, ", ", kMessageColumns) : names;
}

using Visit = absl::FunctionRef<absl::Status(const Statement& row)>;

// Visits the rows that `rows` has, and returns how many.
absl::StatusOr<int64_t> VisitRows(Statement& rows, Visit visit) {
  for (int64_t count = 0;; ++count) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return count;
    TERSE_RETURN_IF_ERROR(visit(rows));
  }
}

// PostgreSQL would send all rows of a query at once.
absl::Status ForEachRow(SqlDb& db, const std::string& query, Visit visit) {
  if (db.engine() == SqlEngine::kSqlite) {
    Statement rows = db.Prepare(query);
    return VisitRows(rows, visit).status();
  }
  TERSE_RETURN_IF_ERROR(db.Script(absl::StrCat("DECLARE copied NO SCROLL CURSOR FOR ", query)));
  // The columns are those of this query, so the statement is not that of another one.
  const std::string fetch = absl::StrCat("FETCH ", kFetchedRows, " FROM copied /* ", query, " */");
  int64_t count = kFetchedRows;
  while (count == kFetchedRows) {
    Statement rows = db.Prepare(fetch);
    TERSE_ASSIGN_OR_RETURN(count, VisitRows(rows, visit));
  }
  return db.Script("CLOSE copied");
}

void BindColumn(Statement& to, char kind, const Statement& row, int column) {
  if (row.IsNull(column)) {
    to.Null();
  } else if (kind == 'i') {
    to.Int(row.GetInt(column));
  } else if (kind == 'r') {
    to.Real(row.GetReal(column));
  } else if (kind == 't') {
    to.Text(row.GetText(column));
  } else {
    to.Blob(row.GetBlob(column));
  }
}

class Copier {
 public:
  Copier(SqlDb& from, LargeMessages& from_messages, SqlDb& to, LargeMessages& to_messages)
      : from_(from), from_messages_(from_messages), to_(to), to_messages_(to_messages) {}

  absl::Status Copy(const CopiedTable& table) {
    const std::vector<Column> columns = ColumnsOf(table);
    const std::string names = NamesOf(table, columns);
    const size_t values = columns.size() + (table.has_message ? kMessageColumnCount : 0);
    const std::string insert = absl::StrCat("INSERT INTO ", table.name, " (", names, ") VALUES (",
                                            absl::StrJoin(std::vector<std::string>(values, "?"), ", "), ")");
    // The rows that a new database has.
    TERSE_RETURN_IF_ERROR(to_.Prepare(absl::StrCat("DELETE FROM ", table.name)).Run());
    return ForEachRow(from_, absl::StrCat("SELECT ", names, " FROM ", table.name, " ORDER BY 1, 2"),
                      [&](const Statement& row) { return CopyRow(table, columns, insert, row); });
  }

 private:
  absl::Status CopyRow(const CopiedTable& table, const std::vector<Column>& columns, const std::string& insert,
                       const Statement& row) {
    std::string message;
    StoredMessage stored;
    const int first_of_message = static_cast<int>(columns.size());
    if (table.has_message) {
      TERSE_ASSIGN_OR_RETURN(message, MessageOf(from_, row, first_of_message, from_messages_));
      TERSE_ASSIGN_OR_RETURN(stored, StoreMessage(to_, to_messages_, message));
    }
    Statement to = to_.Prepare(insert);
    for (int i = 0; i < first_of_message; ++i) BindColumn(to, columns[static_cast<size_t>(i)].kind, row, i);
    if (table.has_message) BindMessage(to, stored);
    return to.Run();
  }

  SqlDb& from_;
  LargeMessages& from_messages_;
  SqlDb& to_;
  LargeMessages& to_messages_;
};

}  // namespace

absl::Status CopyRun(SqlDb& from, LargeMessages& from_messages, SqlDb& to, LargeMessages& to_messages) {
  Copier copier(from, from_messages, to, to_messages);
  for (const CopiedTable& table : kCopiedTables) TERSE_RETURN_IF_ERROR(copier.Copy(table));
  return absl::OkStatus();
}

}  // namespace terse
