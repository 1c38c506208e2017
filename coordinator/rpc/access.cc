#include "coordinator/rpc/access.h"

#include <algorithm>

namespace terse {

absl::Span<const MethodAccess> AccessTable() {
  static const auto* const table = [] {
    const std::vector<Role> takes_part = {Role::kClient, Role::kRelay};
    const std::vector<Role> looks = {Role::kObserver, Role::kOperator};
    const std::vector<Role> acts = {Role::kOperator};
    const std::vector<Role> all = {Role::kClient, Role::kRelay, Role::kObserver, Role::kOperator};
    return new std::vector<MethodAccess>{
        {"/terse.v1.Fleet/Session", takes_part},
        {"/terse.v1.Fleet/DownloadCheckpoint", takes_part},
        {"/terse.v1.Fleet/DownloadModule", takes_part},
        {"/terse.v1.Admin/ListRuns", looks},
        {"/terse.v1.Admin/GetStatus", looks},
        {"/terse.v1.Admin/ListRounds", looks},
        {"/terse.v1.Admin/ListClients", looks},
        {"/terse.v1.Admin/ListLedger", looks},
        {"/terse.v1.Admin/ListMetrics", looks},
        {"/terse.v1.Admin/ListEvents", looks},
        {"/terse.v1.Admin/ListTraces", looks},
        {"/terse.v1.Admin/Watch", looks},
        {"/terse.v1.Admin/CreateRun", acts},
        {"/terse.v1.Admin/DeleteRun", acts},
        {"/terse.v1.Admin/Stop", acts},
        {"/terse.v1.Admin/Pause", acts},
        {"/terse.v1.Admin/Resume", acts},
        {"/terse.v1.Admin/AbortRound", acts},
        {"/terse.v1.Admin/SetAside", acts},
        // The model is what the fleet's data became: who looks at a run does not get it.
        {"/terse.v1.Admin/Backup", acts},
        {"/terse.v1.Admin/Export", acts},
        // The audit log names the other callers, so it is for operators.
        {"/terse.v1.Admin/ListAudit", acts},
        {"/grpc.health.v1.Health/Check", all},
        {"/grpc.health.v1.Health/Watch", all},
        {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", looks},
    };
  }();
  return *table;
}

bool MayCall(Role role, absl::string_view method) {
  for (const MethodAccess& row : AccessTable()) {
    if (row.method == method) return std::find(row.roles.begin(), row.roles.end(), role) != row.roles.end();
  }
  return false;
}

}  // namespace terse
