// Rows of a terminal's screen, made of texts that may hold anything.
#ifndef TERSE_TERSECTL_SCREEN_ROW_H_
#define TERSE_TERSECTL_SCREEN_ROW_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace terse {

// Columns that a terminal gives to `text` as ScreenRow shows it: two for wide characters.
size_t ColumnsOf(absl::string_view text);

enum class Ink {
  kPlain,
  kBold,
  kDim,
  kGraph,
  kAlarm,
  kState,  // the color that the word has in tables (WithStateColor)
};

// One row, built from left to right, that never takes more than its width. Text is UTF-8; control characters and bytes
// that are no UTF-8 are shown as U+FFFD, so that a client's name can neither move the cursor nor change colors, and
// characters without a width (combining marks, marks of direction) are left out, because terminals do not agree on
// them. Text that does not fit is cut, and ends with an ellipsis.
class ScreenRow {
 public:
  // Without `color` the row has no escape sequence at all.
  ScreenRow(size_t width, bool color) : room_(width), color_(color) {}

  void Add(absl::string_view text, Ink ink = Ink::kPlain);
  // In exactly `columns`, as far as there is room: cut, or padded on the right, or on the left for `right`.
  void AddCell(absl::string_view text, size_t columns, bool right, Ink ink = Ink::kPlain);

  // Columns that are left.
  size_t room() const { return room_; }
  // Without blanks at its end.
  const std::string& text() const { return text_; }

 private:
  void AddBlanks(size_t columns);

  size_t room_;
  const bool color_;
  std::string text_;
  size_t blanks_ = 0;  // that are due before the next text
};

struct ScreenSize {
  size_t width = 80, height = 24;
  bool operator==(const ScreenSize& other) const { return width == other.width && height == other.height; }
};

// The rows of a screen so far.
struct ScreenPage {
  ScreenRow NewRow() const { return ScreenRow(size.width, color); }
  void Put(const ScreenRow& row) { rows.push_back(row.text()); }

  ScreenSize size;
  bool color = false;
  std::vector<std::string> rows;
};

}  // namespace terse

#endif  // TERSE_TERSECTL_SCREEN_ROW_H_
