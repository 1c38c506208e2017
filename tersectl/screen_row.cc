#include "tersectl/screen_row.h"

#include <locale.h>
#include <utf8.h>
#include <wchar.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tersectl/ansi.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

constexpr char kEllipsis[] = "\u2026";

// As C.UTF-8 has it, which comes with the C library: what is drawn must not depend on the user's locale. Negative for
// control characters.
int WidthOf(char32_t character) {
  static const locale_t kUtf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  const locale_t before = uselocale(kUtf8);
  const int width = wcwidth(static_cast<wchar_t>(character));
  uselocale(before);
  return width;
}

struct Fitted {
  std::string text;
  size_t columns = 0;
};

// The part of `text` that may be shown and fits.
Fitted Fit(absl::string_view text, size_t most) {
  std::string valid;
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(valid));
  Fitted whole, cut;  // `cut` leaves a column for the ellipsis
  for (auto at = valid.begin(); at != valid.end();) {
    const char32_t character = utf8::unchecked::next(at);
    const int width = WidthOf(character);
    if (width == 0 && character != 0) continue;
    const size_t columns = width < 0 || character == 0 ? 1 : static_cast<size_t>(width);
    if (whole.columns + columns > most) {
      if (most == 0) return {};
      return {absl::StrCat(cut.text, kEllipsis), cut.columns + 1};
    }
    utf8::unchecked::append(width <= 0 ? 0xFFFD : character, std::back_inserter(whole.text));
    whole.columns += columns;
    if (whole.columns < most) cut = whole;
  }
  return whole;
}

std::string Inked(absl::string_view text, absl::string_view meaning, Ink ink) {
  switch (ink) {
    case Ink::kPlain:
      return std::string(text);
    case Ink::kBold:
      return absl::StrCat(ansi::kBold, text, ansi::kReset);
    case Ink::kDim:
      return absl::StrCat(ansi::kDim, text, ansi::kReset);
    case Ink::kGraph:
      return absl::StrCat(ansi::kCyan, text, ansi::kReset);
    case Ink::kAlarm:
      return absl::StrCat(ansi::kBoldRed, text, ansi::kReset);
    case Ink::kState:
      return WithStateColor(text, meaning);
  }
  return std::string(text);
}

}  // namespace

size_t ColumnsOf(absl::string_view text) { return Fit(text, static_cast<size_t>(-1)).columns; }

void ScreenRow::AddBlanks(size_t columns) {
  columns = std::min(columns, room_);
  blanks_ += columns;
  room_ -= columns;
}

void ScreenRow::Add(absl::string_view text, Ink ink) {
  const size_t leading = std::min(text.find_first_not_of(' '), text.size());
  AddBlanks(leading);
  text.remove_prefix(leading);
  const absl::string_view body = text.substr(0, text.find_last_not_of(' ') + 1);
  const Fitted fitted = Fit(body, room_);
  if (!fitted.text.empty()) {
    text_.append(blanks_, ' ');
    blanks_ = 0;
    text_ += color_ ? Inked(fitted.text, body, ink) : fitted.text;
    room_ -= fitted.columns;
  }
  AddBlanks(text.size() - body.size());
}

void ScreenRow::AddCell(absl::string_view text, size_t columns, bool right, Ink ink) {
  columns = std::min(columns, room_);
  const Fitted fitted = Fit(text, columns);
  const size_t padding = columns - fitted.columns;
  if (right) AddBlanks(padding);
  Add(fitted.text, ink);
  if (!right) AddBlanks(padding);
}

}  // namespace terse
