#include "tersectl/text_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "core/log/plain_text.h"
#include "tersectl/ansi.h"
#include "tersectl/screen_row.h"

namespace terse {
namespace {

absl::string_view ColorOf(absl::string_view state) {
  for (const absl::string_view good : {"committed", "finished", "connected", "training", "valid", "ok"}) {
    if (state == good) return ansi::kGreen;
  }
  for (const absl::string_view bad : {"aborted", "stopped", "away", "expired", "revoked", "failure"}) {
    if (state == bad) return ansi::kRed;
  }
  for (const absl::string_view under_way : {"open", "closed", "active", "stopping", "warning"}) {
    if (state == under_way) return ansi::kYellow;
  }
  return "";
}

// A text that wraps gets at least this much room.
constexpr size_t kLeastWrapped = 12;

const std::string& kNoText = *new std::string();

// Breaks at blanks; a word that is longer than a line is cut between characters.
std::vector<std::string> Wrapped(absl::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (ColumnsOf(text) > width) {
    size_t end = 0, blank = 0;
    for (size_t i = 1; i < text.size() && ColumnsOf(text.substr(0, i)) <= width; ++i) {
      const bool is_between = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
      if (is_between) end = i;
      if (text[i] == ' ') blank = i;
    }
    if (blank == 0) blank = std::max<size_t>(end, 1);
    lines.emplace_back(text.substr(0, blank));
    text = absl::StripLeadingAsciiWhitespace(text.substr(blank));
  }
  lines.emplace_back(text);
  return lines;
}

}  // namespace

std::string WithStateColor(absl::string_view text, absl::string_view state) {
  const absl::string_view color = ColorOf(state);
  return color.empty() ? std::string(text) : absl::StrCat(color, text, ansi::kReset);
}

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_) column.title = PlainText(column.title);
}

void TextTable::AddRow(std::vector<std::string> cells) {
  for (size_t i = 0; i < cells.size(); ++i)
    cells[i] = cells[i].empty() && columns_[i].right ? "-" : PlainText(cells[i]);
  rows_.push_back(std::move(cells));
}

std::vector<size_t> TextTable::Widths(size_t room) const {
  std::vector<size_t> widths;
  size_t sum = 0;
  for (size_t column = 0; column < columns_.size(); ++column) {
    widths.push_back(ColumnsOf(columns_[column].title));
    for (const auto& row : rows_) widths[column] = std::max(widths[column], ColumnsOf(row[column]));
    sum += widths[column] + (column == 0 ? 0 : 2);
  }
  // The widest of those that wrap gives way first.
  while (room > 0 && sum > room) {
    size_t widest = columns_.size();
    for (size_t column = 0; column < columns_.size(); ++column) {
      if (!columns_[column].wraps || widths[column] <= std::max(kLeastWrapped, columns_[column].title.size())) continue;
      if (widest == columns_.size() || widths[column] > widths[widest]) widest = column;
    }
    if (widest == columns_.size()) break;
    --widths[widest];
    --sum;
  }
  return widths;
}

std::string TextTable::Render(bool color, size_t room) const {
  const std::vector<size_t> widths = Widths(room);
  std::string text;
  const auto append = [&](size_t column, absl::string_view cell, absl::string_view shown) {
    const size_t width = ColumnsOf(cell);
    const std::string padding(widths[column] - std::min(width, widths[column]), ' ');
    const bool last = column + 1 == columns_.size();
    if (columns_[column].right) {
      absl::StrAppend(&text, padding, shown, last ? "" : "  ");
    } else {
      absl::StrAppend(&text, shown, last ? "" : padding, last ? "" : "  ");
    }
  };
  for (size_t i = 0; i < columns_.size(); ++i) {
    append(i, columns_[i].title,
           color ? absl::StrCat(ansi::kBold, columns_[i].title, ansi::kReset) : columns_[i].title);
  }
  text += "\n";
  for (const auto& row : rows_) {
    std::vector<std::vector<std::string>> lines;
    size_t height = 1;
    for (size_t i = 0; i < columns_.size(); ++i) {
      lines.push_back(columns_[i].wraps ? Wrapped(row[i], widths[i]) : std::vector<std::string>{row[i]});
      height = std::max(height, lines.back().size());
    }
    for (size_t line = 0; line < height; ++line) {
      for (size_t i = 0; i < columns_.size(); ++i) {
        const std::string& cell = line < lines[i].size() ? lines[i][line] : kNoText;
        append(i, cell, color ? WithStateColor(cell, cell) : cell);
      }
      if (line > 0) absl::StripTrailingAsciiWhitespace(&text);
      text += "\n";
    }
  }
  return text;
}

std::string BytesText(uint64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  static constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < sizeof(kUnits) / sizeof(kUnits[0])) {
    value /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, kUnits[unit]);
}

std::string DurationText(double seconds) {
  if (seconds < 0.9995) return absl::StrFormat("%.0f ms", seconds * 1000);
  if (seconds < 59.95) return absl::StrFormat("%.1f s", seconds);
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return absl::StrFormat("%dm %02ds", whole / 60, whole % 60);
  return absl::StrFormat("%dh %02dm", whole / 3600, whole % 3600 / 60);
}

std::string TimeText(int64_t unix_us) {
  if (unix_us == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S %z", absl::FromUnixMicros(unix_us), absl::LocalTimeZone());
}

std::string TimeText(absl::Time time) { return TimeText(absl::ToUnixMicros(time)); }

std::string DecimalText(double value) { return absl::StrFormat("%.4f", value); }

std::string RateText(double rate) {
  if (!(rate > 0)) return "-";
  return absl::StrFormat("x%.*f", rate < 9.995 ? 2 : rate < 99.95 ? 1 : 0, rate);
}

std::string ClientText(int64_t index, const std::string& name) {
  if (index < 0) return "";
  return name.empty() ? absl::StrCat("#", index) : name;
}

}  // namespace terse
