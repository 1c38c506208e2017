// The components of terse-client's log (docs/LOGS.md).
#ifndef TERSE_CLIENT_LOG_COMPONENTS_H_
#define TERSE_CLIENT_LOG_COMPONENTS_H_

#include "absl/strings/string_view.h"
#include "web/log_component.h"

namespace terse {

inline constexpr absl::string_view kDaemonLog = "daemon";          // the process and its state directory
inline constexpr absl::string_view kClientSessionLog = "session";  // what passes between it and the coordinator
inline constexpr absl::string_view kLinkLog = "link";              // its connections
inline constexpr absl::string_view kEnrolLog = "enrol";            // how it gets its certificate

inline constexpr absl::string_view kClientLogs[] = {kDaemonLog, kClientSessionLog, kLinkLog, kEnrolLog, kWebLog};

}  // namespace terse

#endif  // TERSE_CLIENT_LOG_COMPONENTS_H_
