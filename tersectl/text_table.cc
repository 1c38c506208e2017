#include "tersectl/text_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "core/log/plain_text.h"
#include "tersectl/ansi.h"

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

std::string TextTable::Render(bool color) const {
  std::vector<size_t> widths;
  for (size_t column = 0; column < columns_.size(); ++column) {
    widths.push_back(columns_[column].title.size());
    for (const auto& row : rows_) widths[column] = std::max(widths[column], row[column].size());
  }
  std::string text;
  const auto append = [&](size_t column, absl::string_view cell, absl::string_view shown) {
    const std::string padding(widths[column] - cell.size(), ' ');
    const bool last = column + 1 == columns_.size();
    if (columns_[column].right) {
      absl::StrAppend(&text, padding, shown, last ? "\n" : "  ");
    } else {
      absl::StrAppend(&text, shown, last ? "" : padding, last ? "\n" : "  ");
    }
  };
  for (size_t i = 0; i < columns_.size(); ++i) {
    append(i, columns_[i].title,
           color ? absl::StrCat(ansi::kBold, columns_[i].title, ansi::kReset) : columns_[i].title);
  }
  for (const auto& row : rows_) {
    for (size_t i = 0; i < columns_.size(); ++i) append(i, row[i], color ? WithStateColor(row[i], row[i]) : row[i]);
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
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixMicros(unix_us), absl::LocalTimeZone());
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
