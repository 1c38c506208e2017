#include "coordinator/set_aside.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {

absl::Status RecordFailure(RunContext& run, int64_t client, const std::string& reason) {
  TERSE_ASSIGN_OR_RETURN(const ClientRecord record, run.store->RecordFailure(client));
  const ClientPolicy& policy = run.config->clients;
  const bool too_many = policy.set_aside_after > 0 && record.failures >= policy.set_aside_after;
  if (!too_many || record.set_aside_until_us > run.Now()) return absl::OkStatus();
  return SetAside(run, client, run.Now() + static_cast<int64_t>(policy.set_aside_seconds * 1e6),
                  absl::StrCat(record.failures, " failures in a row; the last: ", reason));
}

absl::Status SetAside(RunContext& run, int64_t client, int64_t until_us, const std::string& reason) {
  const absl::Status known = run.store->GetClient(client).status();
  if (absl::IsNotFound(known)) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(known);
  TERSE_RETURN_IF_ERROR(run.store->SetAside(client, until_us, reason));
  run.Tell(until_us == 0 ? event::kClientReadmitted : event::kClientSetAside, client, reason);
  if (until_us != 0) run.invited.erase(client);  // its place is free, and what it began does not count any more
  const int64_t until = until_us == 0 ? 0 : run.MonotonicAt(until_us);
  for (auto& [id, session] : run.sessions) {
    if (session.client == client) session.set_aside_until_us = until;
  }
  return absl::OkStatus();
}

absl::Status ReadmitDue(RunContext& run) {
  const int64_t now = run.MonotonicNow();
  for (auto& [id, session] : run.sessions) {
    if (session.set_aside_until_us == 0 || session.set_aside_until_us > now) continue;
    TERSE_RETURN_IF_ERROR(SetAside(run, session.client, 0, "its time is over"));
  }
  return absl::OkStatus();
}

int64_t NextReadmissionMicros(const RunContext& run) {
  int64_t next = std::numeric_limits<int64_t>::max();
  for (const auto& [id, session] : run.sessions) {
    if (session.set_aside_until_us != 0) next = std::min(next, session.set_aside_until_us);
  }
  return next;
}

}  // namespace terse
