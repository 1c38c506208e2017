#include "coordinator/rpc/web_server.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/log_components.h"
#include "coordinator/rpc/dashboard_access.h"
#include "coordinator/web/api.h"
#include "coordinator/web/command_api.h"
#include "coordinator/web/dashboard.h"
#include "core/log/log.h"
#include "core/status.h"
#include "security/transport.h"

namespace terse {
namespace {

RunSample SampleOf(const RunHost& run) {
  const EngineView view = run.View();
  RunSample sample;
  sample.run = run.name();
  sample.serving = run.condition() == RunHost::Condition::kServing;
  if (const absl::StatusOr<RunRecord> record = run.Record(); record.ok()) {
    sample.state = std::string(RunStateName(record->state));
  }
  sample.version = view.head.version;
  sample.rounds_planned = run.config().rounds.count;
  // Those that nobody is in now are none, not unknown.
  for (const char* state : {"training", "waiting", "syncing", "set aside"}) sample.clients[state] = 0;
  for (const SessionView& session : view.sessions) ++sample.clients[session.state];
  if (const auto loop = run.Loop(); loop.ok()) {
    sample.queued_events = (*loop)->waiting();
    sample.event_times = (*loop)->times().Counts();
  }
  return sample;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> StartWebServer(const WebServerOptions& options) {
  if (options.address.empty()) return std::unique_ptr<HttpServer>();
  HttpOptions http;
  http.address = options.address;
  http.insecure = options.insecure;
  if (const std::shared_ptr<Gatekeeper> gatekeeper = options.gatekeeper; gatekeeper != nullptr) {
    http.files = gatekeeper->files();
    http.connections = gatekeeper->connections();
    http.check = [gatekeeper](absl::string_view certificate, absl::string_view method) {
      return gatekeeper->Check(certificate, method);
    };
  }
  const bool is_cleartext = options.gatekeeper == nullptr || IsLocalAddress(options.address);
  TERSE_ASSIGN_OR_RETURN(const std::shared_ptr<const DashboardAccess> access,
                         DashboardAccess::Open(is_cleartext ? options.state_directory : "", options.audit));
  http.check_cleartext = [access](const HttpCaller& caller, absl::string_view method) {
    return access->CheckCleartext(caller, method);
  };
  std::vector<HttpRoute> routes = DashboardRoutes();
  for (HttpRoute& route : ApiRoutes(options.admin, options.clock)) routes.push_back(std::move(route));
  const auto visitor = [access](const HttpCaller& caller) { return access->VisitorOf(caller); };
  for (HttpRoute& route : CommandRoutes(options.admin, visitor)) routes.push_back(std::move(route));
  const auto sample = [runs = options.runs] {
    std::vector<RunSample> samples;
    for (const RunHost* run : runs->runs()) samples.push_back(SampleOf(*run));
    return samples;
  };
  routes.push_back(options.metrics->Route(sample, options.clock));
  return HttpServer::Start(http, std::move(routes));
}

void LogDashboard(const std::string& url, const std::string& state_directory) {
  const std::string token =
      absl::StartsWith(url, "https:")
          ? ""
          : absl::StrCat("; an operator appends #token= and what is in ", state_directory, "/", kTokenFile);
  Log(LogLevel::kInfo, kServerLog, {}, absl::StrCat("dashboard: ", url, token));
}

}  // namespace terse
