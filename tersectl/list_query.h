// The options that every list of tersectl has: which rows, in which order, and which columns.
#ifndef TERSE_TERSECTL_LIST_QUERY_H_
#define TERSE_TERSECTL_LIST_QUERY_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace terse {

// The type of options whose value is several words of those that are allowed, separated by commas
// (CLI::Option::type_name).
inline constexpr char kWordsType[] = "COLUMN,...";
// The types of options whose value is, or begins with, one of the words that the command's option --columns allows.
inline constexpr char kColumnType[] = "COLUMN", kConditionType[] = "COLUMN=VALUE";

// As they were given; all empty: every row in the list's own order, with the usual columns.
struct ListOptions {
  std::vector<std::string> columns;
  bool wide = false;  // every column, whole
  std::string sort;
  bool descending = false;
  std::vector<std::string> where;  // "COLUMN=TEXT"
  uint64_t limit = 0;              // 0: all
};

enum class ColumnKind {
  kText,
  kNumber,
  kBytes,    // shown with a unit
  kSeconds,  // shown as a duration
  kTime      // Unix time in seconds
};

// A column as the options know it. Its title is its name with blanks for '_'.
struct ColumnHead {
  std::string name;
  ColumnKind kind = ColumnKind::kText;
};

// A cell: for people, and, unless its column is a text, what it is compared by.
struct ListCell {
  std::string text;  // empty: not known
  absl::optional<double> number = absl::nullopt;
};

ListCell TextCell(std::string text);
ListCell CountCell(uint64_t count);
ListCell DecimalCell(double value);
ListCell BytesCell(uint64_t bytes);
ListCell SecondsCell(double seconds);
// 0: not known.
ListCell TimeCell(int64_t unix_us);
ListCell UnknownCell();

// One --where: "state=open", "accuracy>=0.9", "up>5MB", "time<2026-11-27 03:00". `=` and `!=` compare with the text
// that is shown, in which '*' stands for any text, or with the number; the others compare numbers, or texts by their
// bytes. What is not known is equal to the empty text alone, and neither smaller nor greater than anything.
class ListCondition {
 public:
  // INVALID_ARGUMENT, with the columns that there are and a suggestion, for a column that there is not; and for a value
  // that the column cannot be compared with.
  static absl::StatusOr<ListCondition> Parse(const std::string& text, const std::vector<ColumnHead>& heads);

  // The column's place among the heads.
  size_t column() const { return column_; }
  bool Holds(const ListCell& cell) const;

 private:
  enum class Operator { kEqual, kUnequal, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

  bool IsEqual(const ListCell& cell) const;

  size_t column_ = 0;
  ColumnKind kind_ = ColumnKind::kText;
  Operator operator_ = Operator::kEqual;
  std::string text_;
  absl::optional<double> number_;
};

// ListOptions with the names looked up.
struct ListQuery {
  std::vector<size_t> columns;  // empty: the usual ones, or all
  absl::optional<size_t> sort;
  std::vector<ListCondition> conditions;
};

// INVALID_ARGUMENT as ListCondition::Parse.
absl::StatusOr<ListQuery> MakeQuery(const ListOptions& options, const std::vector<ColumnHead>& heads);

// The places of the rows that fulfil every condition, in the order of --sort, which keeps equal rows as they were and
// puts unknown values last, and at most --limit. `cell(row, column)` is asked for what is needed.
template <typename CellOf>
std::vector<size_t> ChooseRows(size_t rows, const ListQuery& query, const ListOptions& options, const CellOf& cell);

// Adds the options to a command. With heads their values are checked, and offered by the completion, when the command
// line is read; a list whose columns only its rows tell gives none and has them checked by MakeQuery. `options` must
// outlive the parsing.
void AddListOptions(CLI::App* command, ListOptions* options, const std::vector<ColumnHead>& heads);

// Sorts places of cells, of which there is one for each.
void SortPlaces(const std::vector<ListCell>& cells, bool descending, std::vector<size_t>* places);

template <typename CellOf>
std::vector<size_t> ChooseRows(size_t rows, const ListQuery& query, const ListOptions& options, const CellOf& cell) {
  std::vector<size_t> places;
  for (size_t row = 0; row < rows; ++row) {
    bool holds = true;
    for (const ListCondition& condition : query.conditions) {
      holds = holds && condition.Holds(cell(row, condition.column()));
    }
    if (holds) places.push_back(row);
  }
  if (query.sort.has_value()) {
    std::vector<ListCell> cells;
    for (size_t row = 0; row < rows; ++row) cells.push_back(cell(row, *query.sort));
    SortPlaces(cells, options.descending, &places);
  }
  if (options.limit > 0 && places.size() > options.limit) places.resize(options.limit);
  return places;
}

}  // namespace terse

#endif  // TERSE_TERSECTL_LIST_QUERY_H_
