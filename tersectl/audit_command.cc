// `tersectl audit`.
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "tersectl/commands.h"
#include "tersectl/print.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

std::string WhoText(const v1::AuditRecord& record) {
  return record.certificate().empty() ? record.who() : absl::StrCat(record.who(), " (", record.certificate(), ")");
}

std::string ResultText(const v1::AuditRecord& record) {
  if (record.ended_us() == 0) return "under way";
  if (record.times() == 1) return record.result();
  return absl::StrCat(record.times(), " times until ", TimeText(record.ended_us()), ": ", record.result());
}

}  // namespace

absl::Status ShowAudit(AdminClient& client, const AuditOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::AuditRecord> records, client.ListAudit(options.newest));
  if (options.json) {
    PrintJsonList(records, terminal);
    return absl::OkStatus();
  }
  TextTable table({{"record", true}, {"time"}, {"who"}, {"from"}, {"action"}, {"run"}, {"detail"}, {"result"}});
  for (const v1::AuditRecord& record : records) {
    table.AddRow({absl::StrCat(record.id()), TimeText(record.time_us()), WhoText(record), record.address(),
                  record.action(), record.run(), record.detail(), ResultText(record)});
  }
  *terminal.out << table.Render(terminal.color);
  return absl::OkStatus();
}

}  // namespace terse
