// The names that may join a run: clients.allow of the run's configuration.
#ifndef TERSE_CORE_ALLOW_LIST_H_
#define TERSE_CORE_ALLOW_LIST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace terse {

// Whether the name matches the pattern, in which `*` stands for any characters, also none. Time O(name x pattern).
bool MatchesPattern(absl::string_view pattern, absl::string_view name);

// Whether the name matches one of the patterns; an empty list allows everyone.
bool IsAllowed(const std::vector<std::string>& patterns, absl::string_view name);

}  // namespace terse

#endif  // TERSE_CORE_ALLOW_LIST_H_
