// The newest lines of this process's log in memory, for a page that shows them.
#ifndef TERSE_CORE_LOG_RECENT_LINES_H_
#define TERSE_CORE_LOG_RECENT_LINES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/log/log.h"

namespace terse {

// A line as it was logged, with control characters escaped as in the log itself (core/log/plain_text.h).
struct LogLine {
  uint64_t id = 0;  // 1, 2, ... in the order in which they were logged
  int64_t time_us = 0;
  LogLevel level = LogLevel::kInfo;
  std::string component;
  std::string run;     // empty: of none
  int64_t round = 0;   // 0: of none
  std::string client;  // its name, else its index in digits; empty: of none
  std::string message;
};

// The rest of a longer message is left out, so that so many lines take a bounded amount of memory.
inline constexpr size_t kLongestRecentLine = 2000;

// Returns "debug", "info", "warn" or "error".
absl::string_view LogLevelName(LogLevel level);

// From now on the newest `lines` that the log writes are kept; before the first call, none. Thread-safe.
void KeepRecentLines(size_t lines);

// Oldest first. Thread-safe.
std::vector<LogLine> RecentLines();

// Keeps a line that was logged, where any are kept: the log's own. Thread-safe.
void AddRecentLine(LogLevel level, absl::string_view component, const LogFields& fields, absl::string_view message);

}  // namespace terse

#endif  // TERSE_CORE_LOG_RECENT_LINES_H_
