// The log's component of an HTTP server (docs/LOGS.md).
#ifndef TERSE_WEB_LOG_COMPONENT_H_
#define TERSE_WEB_LOG_COMPONENT_H_

#include "absl/strings/string_view.h"

namespace terse {

inline constexpr absl::string_view kWebLog = "web";  // what a process shows over HTTP

}  // namespace terse

#endif  // TERSE_WEB_LOG_COMPONENT_H_
