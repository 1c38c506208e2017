// The daemons' log: one line an entry on standard error, for people or as JSON (docs/LOGS.md). A peer's text cannot
// begin a line, nor make one unreadable: in both formats line breaks and control characters are escaped, and bytes that
// are no UTF-8 are replaced by U+FFFD. The callers keep keys, invitations and weights out.
#ifndef TERSE_CORE_LOG_LOG_H_
#define TERSE_CORE_LOG_LOG_H_

#include <cstdint>
#include <map>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace terse {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// Human: TIME LEVEL COMPONENT [run=NAME round=N client=NAME]: MESSAGE, in local time and with colours on a terminal.
// JSON: an object with time (RFC 3339, UTC, microseconds), level, component, run, round, client and message.
enum class LogFormat { kHuman, kJson };

// The levels from which on lines are written.
struct LogLevels {
  LogLevel standard = LogLevel::kInfo;
  std::map<std::string, LogLevel, std::less<>> by_component = {};  // others than the standard one

  LogLevel Of(absl::string_view component) const;
};

struct LogSettings {
  LogFormat format = LogFormat::kHuman;
  LogLevels levels;
};

// The subject of a line; a field that is not known is left out of it. A client goes by its name, else by its index.
struct LogFields {
  absl::string_view run = {};
  int64_t round = 0;  // 1, 2, ...; 0: none
  absl::string_view client = {};
  int64_t client_index = -1;  // -1: none
};

// Reads `warn` or `warn,engine=debug,tls=info`: the standard level, which is info where it is not given, and those of
// single components. INVALID_ARGUMENT for a component that is not among `components`, an unknown level, and what is
// given twice.
absl::StatusOr<LogLevels> ParseLogLevels(absl::string_view text, absl::Span<const absl::string_view> components);

// Lines go by these settings from now on, to standard error or to `out`. Without a call: LogSettings{}. Not while
// another thread logs: a program calls it first.
void ConfigureLog(const LogSettings& settings, std::ostream* out = nullptr);

// Whether such a line would be written. Asked before an expensive line is made. Thread-safe.
bool IsLogged(LogLevel level, absl::string_view component);

// Writes a line, unless its component's level is higher. Thread-safe.
void Log(LogLevel level, absl::string_view component, const LogFields& fields, absl::string_view message);

}  // namespace terse

#endif  // TERSE_CORE_LOG_LOG_H_
