// The page that people watch runs on: assets/ inside the program, over the API of api.h.
#ifndef TERSE_COORDINATOR_WEB_DASHBOARD_H_
#define TERSE_COORDINATOR_WEB_DASHBOARD_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "web/http_server.h"

namespace terse {

// A file of the page. What it refers to lives as long as the program.
struct WebAsset {
  absl::string_view path;  // in the URL
  absl::string_view type;  // MIME
  absl::string_view bytes;
};

// Every file of the page. Made by CMake from assets/ and Chart.js.
absl::Span<const WebAsset> WebAssets();

// The routes of the page, for everyone who may list the runs.
std::vector<HttpRoute> DashboardRoutes();

}  // namespace terse

#endif  // TERSE_COORDINATOR_WEB_DASHBOARD_H_
