// Rows of the run store as messages of terse.v1.Admin.
#ifndef TERSE_COORDINATOR_RPC_ADMIN_REPLY_H_
#define TERSE_COORDINATOR_RPC_ADMIN_REPLY_H_

#include <memory>
#include <string>

#include "coordinator/engine.h"
#include "coordinator/rpc/round_traces.h"
#include "coordinator/rpc/run_host.h"
#include "core/clock.h"
#include "security/live_tls_directory.h"
#include "storage/run_store.h"
#include "terse/v1/admin.pb.h"

namespace terse {

// The process that serves the runs, as it looks at itself. The clock must outlive this.
struct ProcessFacts {
  std::string state_directory;
  Clock* clock = nullptr;
  std::shared_ptr<const LiveTlsDirectory> tls;  // nullptr: it serves in cleartext
};

void Fill(const RoundRecord& round, v1::Round* out);
void Fill(const ClientRecord& client, v1::Client* out);
// Appends a row for each metric.
void AddTo(const ClientMetrics& of_client, v1::MetricsReply* out);
void Fill(const LedgerEntry& entry, v1::LedgerRow* out);
void Fill(const EventRecord& event, v1::Event* out);
// Fills the results and costs.
void Fill(const BelowFacts& below, v1::TreeBelow* out);
void Fill(const RunTotals& totals, v1::Run* out);
void Fill(const ClientTrace& trace, v1::ClientTrace* out);
// Also fills in the time and the disk as they are now.
void Fill(const ProcessFacts& process, v1::Coordinator* out);

// Add what only a connected client has, and the client's sums of the ledger.
void AddSession(const SessionView& session, v1::Client* out);
void AddBytes(const LedgerEntry& entry, v1::Client* out);

// Returns the run's phase for people: the engine's phase, "ended", or the reason for which it is not served.
std::string PhaseOf(const RunHost& run, const RunRecord& record, const EngineView& view);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_ADMIN_REPLY_H_
