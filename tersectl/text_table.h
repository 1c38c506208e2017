// Text for people: aligned tables, bytes, durations and points in time.
#ifndef TERSE_TERSECTL_TEXT_TABLE_H_
#define TERSE_TERSECTL_TEXT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace terse {

// A table whose columns are as wide as their widest cell. Columns are aligned to the right where `Column::right` says
// so.
class TextTable {
 public:
  struct Column {
    std::string title;
    bool right = false;
    bool wraps = false;  // its texts may take several lines
  };

  // Titles and cells are shown as PlainText: a name or a reason cannot steer the terminal.
  explicit TextTable(std::vector<Column> columns);

  // One cell for each column. An empty one in a column that is aligned to the right is unknown and shown as "-".
  void AddRow(std::vector<std::string> cells);

  // With `color`, titles are bold and words for states get the color of StateColor. In a `room` of so many columns of a
  // terminal, texts of columns that wrap are broken into lines where the table would be wider; 0: as wide as it is.
  std::string Render(bool color, size_t room = 0) const;

 private:
  std::vector<size_t> Widths(size_t room) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// `text` in the color that its meaning has on a terminal: "committed" green, "aborted" red, "open" yellow, and so on;
// other words stay as they are.
std::string WithStateColor(absl::string_view text, absl::string_view state);

// "743 B", "1.72 MB": decimal units, three significant digits.
std::string BytesText(uint64_t bytes);
// "850 ms", "12.3 s", "3m 20s", "2h 05m".
std::string DurationText(double seconds);
// "2024-05-01 12:00:03 +0200": local time and how far it is ahead of UTC; "-" for 0.
std::string TimeText(int64_t unix_us);
std::string TimeText(absl::Time time);
// Four decimals.
std::string DecimalText(double value);
// "x3491", "x12.3"; "-" for 0.
std::string RateText(double rate);
// A client by its name, by its index ("#3") where a coordinator of an earlier release does not tell the name; empty for
// an index below 0, which is no client.
std::string ClientText(int64_t index, const std::string& name);

}  // namespace terse

#endif  // TERSE_TERSECTL_TEXT_TABLE_H_
