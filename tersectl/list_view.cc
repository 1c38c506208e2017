#include "tersectl/list_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/log/plain_text.h"
#include "tersectl/screen_row.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

// The width that every list's usual columns fit.
constexpr size_t kUsualRoom = 100;
// A text of any length is not made narrower than this.
constexpr size_t kLeastText = 12;
constexpr size_t kGap = 2;

bool IsText(ColumnUse use) { return use == ColumnUse::kUsualText || use == ColumnUse::kWideText; }

std::string TitleOf(const ColumnHead& head) { return absl::StrReplaceAll(head.name, {{"_", " "}}); }

bool IsRight(ColumnKind kind) {
  return kind == ColumnKind::kNumber || kind == ColumnKind::kBytes || kind == ColumnKind::kSeconds;
}

std::vector<size_t> AskedFor(const std::vector<ShownColumn>& columns, const ListQuery& query, bool wide) {
  if (!query.columns.empty()) return query.columns;
  std::vector<size_t> places;
  for (size_t i = 0; i < columns.size(); ++i) {
    const ColumnUse use = columns[i].use;
    if (wide || use == ColumnUse::kUsual || use == ColumnUse::kUsualText) places.push_back(i);
  }
  return places;
}

// Takes columns away from the end, but for texts and the first, until the others fit; returns them in their order.
std::vector<size_t> TakeTooMany(const std::vector<size_t>& widths, const std::vector<ShownColumn>& columns, size_t room,
                                std::vector<size_t>* places) {
  std::vector<size_t> taken;
  const auto least_width = [&] {
    size_t sum = 0;
    for (const size_t place : *places) {
      sum += kGap + (IsText(columns[place].use) ? std::min(kLeastText, widths[place]) : widths[place]);
    }
    return sum - kGap;
  };
  for (size_t i = places->size(); i > 1 && least_width() > room; --i) {
    const size_t place = (*places)[i - 1];
    if (IsText(columns[place].use)) continue;
    taken.insert(taken.begin(), place);
    places->erase(places->begin() + static_cast<ptrdiff_t>(i - 1));
  }
  return taken;
}

}  // namespace

void PrintList(const std::vector<ShownColumn>& columns, const ListQuery& query, const ListOptions& options, size_t rows,
               const std::function<ListCell(size_t, size_t)>& cell, const Terminal& terminal) {
  std::vector<size_t> places = AskedFor(columns, query, options.wide);
  if (!options.wide && query.columns.empty()) {
    std::vector<size_t> widths(columns.size());
    for (const size_t place : places) {
      widths[place] = TitleOf(columns[place].head).size();
      for (size_t row = 0; row < rows; ++row) widths[place] = std::max(widths[place], ColumnsOf(cell(row, place).text));
    }
    const size_t room = terminal.columns > 0 ? terminal.columns : kUsualRoom;
    const std::vector<size_t> taken = TakeTooMany(widths, columns, room, &places);
    if (!taken.empty()) {
      *terminal.err << "tersectl: there is no room for "
                    << absl::StrJoin(
                           taken, ", ",
                           [&](std::string* out, size_t place) { out->append(PlainText(columns[place].head.name)); })
                    << "; --wide shows every column\n";
    }
  }
  std::vector<TextTable::Column> head;
  for (const size_t place : places) {
    head.push_back({TitleOf(columns[place].head), IsRight(columns[place].head.kind), IsText(columns[place].use)});
  }
  TextTable table(std::move(head));
  for (size_t row = 0; row < rows; ++row) {
    std::vector<std::string> cells;
    for (const size_t place : places) {
      ListCell one = cell(row, place);
      const bool is_unknown = one.text.empty() && !IsText(columns[place].use);
      cells.push_back(is_unknown ? "-" : std::move(one.text));
    }
    table.AddRow(std::move(cells));
  }
  *terminal.out << table.Render(terminal.color, options.wide ? 0 : terminal.columns);
}

std::string NoRows(const std::string& one, const std::string& nothing, size_t rows, const ListOptions& options) {
  if (rows == 0 || options.where.empty()) return absl::StrCat(nothing, "\n");
  return absl::StrCat("no ", one, " of ", rows, " has ", PlainText(absl::StrJoin(options.where, " and ")), "\n");
}

}  // namespace terse
