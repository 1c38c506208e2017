// An operator's commands over HTTP, and what only an operator may read: docs/DASHBOARD.md lists the paths.
#ifndef TERSE_COORDINATOR_WEB_COMMAND_API_H_
#define TERSE_COORDINATOR_WEB_COMMAND_API_H_

#include <functional>
#include <vector>

#include "coordinator/web/operator_desk.h"
#include "web/http_server.h"

namespace terse {

// The one who asks, and what he may do now.
struct Visitor {
  AuditedCaller caller;
  bool is_operator = false;
  std::string hint;  // how he would become one; empty where he is
};
// Called for each request, by several threads at once.
using VisitorOf = std::function<Visitor(const HttpCaller&)>;

// The most lines of the log of a reply, which is as many as the process keeps.
inline constexpr size_t kMostLogLines = 1000;

// The routes below /api/v1 that an operator has beyond api.h, and /api/v1/me for everybody who may look. `desk` must
// outlive the server.
std::vector<HttpRoute> CommandRoutes(OperatorDesk* desk, VisitorOf visitor);

}  // namespace terse

#endif  // TERSE_COORDINATOR_WEB_COMMAND_API_H_
