#include "core/allow_list.h"

#include "absl/algorithm/container.h"

namespace terse {

bool MatchesPattern(absl::string_view pattern, absl::string_view name) {
  size_t p = 0, n = 0;
  size_t star = absl::string_view::npos;  // the newest one that was met, and how much of the name it has taken
  size_t taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool IsAllowed(const std::vector<std::string>& patterns, absl::string_view name) {
  return patterns.empty() ||
         absl::c_any_of(patterns, [&](const std::string& pattern) { return MatchesPattern(pattern, name); });
}

}  // namespace terse
