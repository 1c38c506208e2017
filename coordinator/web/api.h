// What the admin service says about runs, as JSON over HTTP: docs/DASHBOARD.md lists the paths.
#ifndef TERSE_COORDINATOR_WEB_API_H_
#define TERSE_COORDINATOR_WEB_API_H_

#include <vector>

#include "core/clock.h"
#include "terse/v1/admin.grpc.pb.h"
#include "web/http_server.h"

namespace terse {

// Who may call this may look at the page and the metrics.
inline constexpr char kListRunsMethod[] = "/terse.v1.Admin/ListRuns";

// A reply has so many rounds at most; who wants more asks again from the next one on.
inline constexpr int64_t kMostRoundsOfReply = 1000;

// The routes below /api/v1. The service's reading methods are called without a context, from several threads. Both must
// outlive the server.
std::vector<HttpRoute> ApiRoutes(v1::Admin::Service* admin, Clock* clock);

}  // namespace terse

#endif  // TERSE_COORDINATOR_WEB_API_H_
