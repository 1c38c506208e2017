#include "coordinator/web/dashboard.h"

#include <string>

#include "coordinator/web/api.h"

namespace terse {

std::vector<HttpRoute> DashboardRoutes() {
  std::vector<HttpRoute> routes;
  for (const WebAsset& asset : WebAssets()) {
    const HttpReply reply = {std::string(asset.type), PackText(std::string(asset.bytes))};
    routes.push_back({std::string(asset.path), kListRunsMethod, [reply](const HttpRequest&) { return reply; }});
  }
  return routes;
}

}  // namespace terse
