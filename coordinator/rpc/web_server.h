// The coordinator's HTTP side: dashboard, API and metrics on the address of `--http`.
#ifndef TERSE_COORDINATOR_RPC_WEB_SERVER_H_
#define TERSE_COORDINATOR_RPC_WEB_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/rpc/audited_admin_service.h"
#include "coordinator/rpc/gatekeeper.h"
#include "coordinator/rpc/run_registry.h"
#include "coordinator/web/metrics.h"
#include "core/clock.h"
#include "web/http_server.h"

namespace terse {

struct WebServerOptions {
  std::string address;                     // empty: no server
  bool insecure = false;                   // as HttpOptions
  std::shared_ptr<Gatekeeper> gatekeeper;  // of connections with TLS; without TLS there is none
  std::string state_directory;             // where the dashboard's token is
  // All must outlive the server.
  AuditTrail* audit = nullptr;
  AuditedAdminService* admin = nullptr;
  const RunRegistry* runs = nullptr;
  Metrics* metrics = nullptr;
  Clock* clock = nullptr;
};

// nullptr without an address. Statuses of HttpServer::Start and DashboardAccess::Open.
absl::StatusOr<std::unique_ptr<HttpServer>> StartWebServer(const WebServerOptions& options);

// Logs where the dashboard is, and how an operator of one without certificates shows that he is one.
void LogDashboard(const std::string& url, const std::string& state_directory);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_WEB_SERVER_H_
