// The components of terse-coordinator's log (docs/LOGS.md).
#ifndef TERSE_COORDINATOR_LOG_COMPONENTS_H_
#define TERSE_COORDINATOR_LOG_COMPONENTS_H_

#include "absl/strings/string_view.h"
#include "web/log_component.h"

namespace terse {

inline constexpr absl::string_view kServerLog = "server";    // the process: addresses, start, end
inline constexpr absl::string_view kRunLog = "run";          // a run's events, rounds and disk
inline constexpr absl::string_view kSessionLog = "session";  // one client's connection
inline constexpr absl::string_view kTlsLog = "tls";          // the TLS folder, refused certificates

inline constexpr absl::string_view kCoordinatorLogs[] = {kServerLog, kRunLog, kSessionLog, kTlsLog, kWebLog};

}  // namespace terse

#endif  // TERSE_COORDINATOR_LOG_COMPONENTS_H_
