// The lists of what a coordinator holds, with their columns.
#ifndef TERSE_TERSECTL_LISTS_H_
#define TERSE_TERSECTL_LISTS_H_

#include <vector>

#include "proto/run_config_reference.h"
#include "terse/v1/admin.pb.h"
#include "tersectl/list_view.h"

namespace terse {

// Each is made anew, so that a command may change its copy.
List<v1::Run> RunList();
List<v1::Round> RoundList();
List<v1::Client> ClientList();
List<v1::Event> EventList();
List<v1::LedgerRow> LedgerList();
List<v1::ClientMetric> ClientMetricList();
List<v1::AuditRecord> AuditList();
List<RunConfigKey> ConfigKeyList();
// Its columns after the first two are the metrics that the rounds have.
List<v1::Round> MetricList(const std::vector<v1::Round>& rounds);

}  // namespace terse

#endif  // TERSE_TERSECTL_LISTS_H_
