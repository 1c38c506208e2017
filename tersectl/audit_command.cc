// `tersectl audit`.
#include <vector>

#include "core/status.h"
#include "tersectl/commands.h"
#include "tersectl/lists.h"
#include "tersectl/print.h"

namespace terse {
absl::Status ShowAudit(AdminClient& client, const AuditOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::AuditRecord> records, client.ListAudit(options.newest));
  return ShowList(AuditList(), options.list, options.json, records, terminal,
                  [&](const std::vector<v1::AuditRecord>& chosen) { PrintJsonList(chosen, terminal); });
}

}  // namespace terse
