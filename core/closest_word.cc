#include "core/closest_word.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace terse {
namespace {

constexpr absl::string_view kSeparators = "_-.";

}  // namespace

size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

bool IsInitialsOf(absl::string_view word, absl::string_view name) {
  std::string initials;
  for (const absl::string_view part : absl::StrSplit(name, absl::ByAnyChar(kSeparators), absl::SkipEmpty())) {
    initials.push_back(part.front());
  }
  return initials.size() > 1 && word == initials;
}

bool IsBeginningOf(absl::string_view word, absl::string_view name) {
  return !word.empty() && absl::ConsumePrefix(&name, word) && !name.empty() &&
         absl::StrContains(kSeparators, name.front());
}

std::string ClosestWord(absl::string_view word, const std::vector<std::string>& known) {
  std::string closest;
  size_t limit = word.size() / 3 + 1;  // exclusive
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(word, candidate);
    if (distance >= limit) continue;
    limit = distance;
    closest = candidate;
  }
  if (!closest.empty()) return closest;
  for (const auto is_meant : {IsInitialsOf, IsBeginningOf}) {
    const auto meant = std::find_if(known.begin(), known.end(),
                                    [&](const std::string& candidate) { return is_meant(word, candidate); });
    if (meant != known.end()) return *meant;
  }
  return "";
}

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& known) {
  const std::string closest = ClosestWord(word, known);
  return closest.empty() ? "" : absl::StrCat("did you mean '", closest, "'? ");
}

}  // namespace terse
