#include "core/log/plain_text.h"

#include <utf8.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace terse {
namespace {

bool IsText(char32_t point) {
  const bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);
  const bool separator = point == 0x2028 || point == 0x2029;
  const bool turn = (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
  return !control && !separator && !turn;
}

}  // namespace

std::string PlainText(absl::string_view text) {
  // Nearly all text is of these characters alone, and a list for programs has a megabyte of it.
  if (std::all_of(text.begin(), text.end(), absl::ascii_isprint)) return std::string(text);
  std::string valid, plain;
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(valid));
  for (auto at = valid.begin(); at != valid.end();) {
    const auto begin = at;
    const char32_t point = utf8::unchecked::next(at);
    if (IsText(point)) {
      plain.append(begin, at);
    } else if (point == '\n') {
      plain += "\\n";
    } else {
      absl::StrAppendFormat(&plain, "\\u%04x", static_cast<uint32_t>(point));
    }
  }
  return plain;
}

std::string PlainLines(absl::string_view text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) lines.push_back(PlainText(line));
  return absl::StrJoin(lines, "\n");
}

}  // namespace terse
