#include "storage/sql_db.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"

namespace terse {

SqlText SqlCat(std::initializer_list<SqlText> pieces) {
  std::string sqlite, postgres;
  for (const SqlText& piece : pieces) {
    sqlite += piece.For(SqlEngine::kSqlite);
    postgres += piece.For(SqlEngine::kPostgres);
  }
  return SqlText(std::move(sqlite), std::move(postgres));
}

Statement::Statement(SqlDb* db, absl::StatusOr<std::unique_ptr<Cursor>> cursor) : db_(db), status_(cursor.status()) {
  if (cursor.ok()) cursor_ = *std::move(cursor);
}

template <typename Bind>
Statement& Statement::BindNext(Bind bind) {
  if (status_.ok()) status_ = bind(++bound_);
  return *this;
}

Statement& Statement::Int(int64_t value) {
  return BindNext([&](int parameter) { return cursor_->BindInt(parameter, value); });
}

Statement& Statement::Null() {
  return BindNext([&](int parameter) { return cursor_->BindNull(parameter); });
}

Statement& Statement::Real(double value) {
  return BindNext([&](int parameter) {
    return std::isnan(value) ? cursor_->BindNull(parameter) : cursor_->BindReal(parameter, value);
  });
}

Statement& Statement::Text(absl::string_view value) {
  return BindNext([&](int parameter) { return cursor_->BindText(parameter, value); });
}

Statement& Statement::Blob(absl::string_view value) {
  return BindNext([&](int parameter) { return cursor_->BindBlob(parameter, value); });
}

Statement& Statement::Id(const Id128& value) {
  return BindNext([&](int parameter) { return cursor_->BindId(parameter, value); });
}

absl::StatusOr<bool> Statement::Step() {
  TERSE_RETURN_IF_ERROR(status_);
  absl::StatusOr<bool> row = cursor_->Step();
  status_ = row.status();
  return row;
}

absl::Status Statement::Run() {
  TERSE_RETURN_IF_ERROR(status_);
  return status_ = cursor_->Run();
}

absl::Status Statement::RunForOne(absl::string_view otherwise) {
  TERSE_RETURN_IF_ERROR(Run());
  TERSE_ASSIGN_OR_RETURN(const int64_t changes, db_->Changes());
  return changes == 1 ? absl::OkStatus() : absl::FailedPreconditionError(otherwise);
}

Id128 Statement::GetId(int column) const { return Id128::FromBytes(GetBlob(column)).value_or(Id128()); }

absl::Status SqlDb::InsertRows(absl::string_view table, absl::string_view columns, int64_t rows, FillRow fill) {
  const auto values = static_cast<size_t>(std::count(columns.begin(), columns.end(), ',')) + 1;
  const std::string insert = absl::StrCat("INSERT INTO ", table, " (", columns, ") VALUES (",
                                          absl::StrJoin(std::vector<absl::string_view>(values, "?"), ", "), ")");
  for (int64_t row = 0; row < rows; ++row) {
    Statement statement = Prepare(insert);
    fill(row, statement);
    TERSE_RETURN_IF_ERROR(statement.Run());
  }
  return absl::OkStatus();
}

absl::Status SqlDb::InTransaction(absl::FunctionRef<absl::Status()> body) {
  TERSE_RETURN_IF_ERROR(Begin());
  return End(body());
}

}  // namespace terse
