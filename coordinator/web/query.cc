#include "coordinator/web/query.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace terse {

absl::StatusOr<int64_t> NumberOf(const HttpRequest& request, const std::string& key, int64_t otherwise,
                                 const Bounds& bounds) {
  const auto found = request.query.find(key);
  if (found == request.query.end()) return otherwise;
  int64_t value = 0;
  if (absl::SimpleAtoi(found->second, &value) && value >= bounds.least && value <= bounds.most) return value;
  const bool is_open = bounds.most == std::numeric_limits<int64_t>::max();
  return absl::InvalidArgumentError(absl::StrCat("?", key, "= must be a whole number from ", bounds.least,
                                                 is_open ? " on" : absl::StrCat(" to ", bounds.most), ", not '",
                                                 found->second, "'"));
}

std::string TextOf(const HttpRequest& request, const std::string& key) {
  const auto found = request.query.find(key);
  return found == request.query.end() ? "" : found->second;
}

bool IsPrintable(const std::string& text) { return std::all_of(text.begin(), text.end(), absl::ascii_isprint); }

absl::StatusOr<std::string> RunNameOf(const HttpRequest& request) {
  const std::string& name = request.captures[0];
  if (!IsPrintable(name)) return absl::NotFoundError("no run has such a name");
  return name;
}

}  // namespace terse
