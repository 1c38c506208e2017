// A list of tersectl: rows with named columns, of which the usual ones fit a terminal.
#ifndef TERSE_TERSECTL_LIST_VIEW_H_
#define TERSE_TERSECTL_LIST_VIEW_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/status.h"
#include "tersectl/commands.h"
#include "tersectl/list_query.h"

namespace terse {

enum class ColumnUse {
  kUsual,      // shown unless others are asked for
  kWide,       // shown with --wide
  kUsualText,  // as kUsual; a text of any length, which takes several lines of a terminal
  kWideText    // likewise
};

// One column of the table that is printed.
struct ShownColumn {
  ColumnHead head;
  ColumnUse use = ColumnUse::kUsual;
};

// Prints a table. Without --wide and --columns it has the usual columns, as many of the first as fit the terminal, or
// 100 columns where there is none; the names of the others go to standard error. `cell(row, column)` is a cell of the
// `rows`, by the place of the column in `columns`.
void PrintList(const std::vector<ShownColumn>& columns, const ListQuery& query, const ListOptions& options, size_t rows,
               const std::function<ListCell(size_t, size_t)>& cell, const Terminal& terminal);

// Why there is nothing to show: `nothing`, or "no round of 12 has state=open".
std::string NoRows(const std::string& one, const std::string& nothing, size_t rows, const ListOptions& options);

template <typename Row>
struct ListColumn {
  std::string name;
  ColumnKind kind = ColumnKind::kText;
  std::function<ListCell(const Row&)> cell;
  ColumnUse use = ColumnUse::kUsual;
};

// The most useful column comes first.
template <typename Row>
struct List {
  std::string one;      // "client"
  std::string nothing;  // a sentence for a list without rows
  std::vector<ListColumn<Row>> columns;

  std::vector<ColumnHead> Heads() const {
    std::vector<ColumnHead> heads;
    for (const ListColumn<Row>& column : columns) heads.push_back({column.name, column.kind});
    return heads;
  }

  // The rows of --where, --sort and --limit. INVALID_ARGUMENT as MakeQuery.
  absl::StatusOr<std::vector<Row>> Choose(const ListOptions& options, const std::vector<Row>& rows) const {
    TERSE_ASSIGN_OR_RETURN(const ListQuery query, MakeQuery(options, Heads()));
    std::vector<Row> chosen;
    const auto cell = [&](size_t row, size_t column) { return columns[column].cell(rows[row]); };
    for (const size_t place : ChooseRows(rows.size(), query, options, cell)) chosen.push_back(rows[place]);
    return chosen;
  }

  // Prints the rows that were chosen of `all`.
  absl::Status Print(const ListOptions& options, const std::vector<Row>& chosen, size_t all,
                     const Terminal& terminal) const {
    if (chosen.empty()) {
      *terminal.out << NoRows(one, nothing, all, options);
      return absl::OkStatus();
    }
    TERSE_ASSIGN_OR_RETURN(const ListQuery query, MakeQuery(options, Heads()));
    std::vector<ShownColumn> shown;
    for (const ListColumn<Row>& column : columns) shown.push_back({{column.name, column.kind}, column.use});
    const auto cell = [&](size_t row, size_t column) { return columns[column].cell(chosen[row]); };
    PrintList(shown, query, options, chosen.size(), cell, terminal);
    return absl::OkStatus();
  }
};

// Chooses rows, and prints them as a table or, with --json, by `print_json`, which gets the chosen ones: columns are
// for people alone.
template <typename Row, typename PrintRows>
absl::Status ShowList(const List<Row>& list, const ListOptions& options, bool json, const std::vector<Row>& rows,
                      const Terminal& terminal, const PrintRows& print_json) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<Row> chosen, list.Choose(options, rows));
  if (!json) return list.Print(options, chosen, rows.size(), terminal);
  print_json(chosen);
  return absl::OkStatus();
}

}  // namespace terse

#endif  // TERSE_TERSECTL_LIST_VIEW_H_
