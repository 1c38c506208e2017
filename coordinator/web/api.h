// Serves the admin service's view of runs as JSON over HTTP: docs/DASHBOARD.md lists the paths.
#ifndef TERSE_COORDINATOR_WEB_API_H_
#define TERSE_COORDINATOR_WEB_API_H_

#include <vector>

#include "core/clock.h"
#include "terse/v1/admin.grpc.pb.h"
#include "web/http_server.h"

namespace terse {

// The method whose callers may look at the page and the metrics.
inline constexpr char kListRunsMethod[] = "/terse.v1.Admin/ListRuns";

// The most rounds of a reply. The next request asks for those that follow.
inline constexpr int64_t kMostRoundsOfReply = 1000;

// The routes below /api/v1. The service's reading methods are called without a context, from several threads. Both must
// outlive the server.
std::vector<HttpRoute> ApiRoutes(v1::Admin::Service* admin, Clock* clock);

}  // namespace terse

#endif  // TERSE_COORDINATOR_WEB_API_H_
