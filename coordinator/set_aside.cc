#include "coordinator/set_aside.h"

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {

absl::Status RecordFailure(EngineState& run, int64_t client, const std::string& reason) {
  TERSE_ASSIGN_OR_RETURN(const ClientRecord record, run.store()->RecordFailure(client));
  run.fleet.SetReliability(client, record.reliability);
  const ClientPolicy& policy = run.config->clients;
  const bool too_many = policy.set_aside_after > 0 && record.failures >= policy.set_aside_after;
  if (!too_many || record.set_aside_until_us > run.Now()) return absl::OkStatus();
  return SetAside(run, client, run.Now() + static_cast<int64_t>(policy.set_aside_seconds * 1e6),
                  absl::StrCat(record.failures, " failures in a row; the last: ", reason));
}

absl::Status SetAside(EngineState& run, int64_t client, int64_t until_us, const std::string& reason) {
  const absl::Status known = run.store()->GetClient(client).status();
  if (absl::IsNotFound(known)) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(known);
  TERSE_RETURN_IF_ERROR(run.store()->SetAside(client, until_us, reason));
  run.Tell(until_us == 0 ? event::kClientReadmitted : event::kClientSetAside, client, reason);
  if (until_us != 0) run.fleet.SetInvited(client, false);  // its place is free, and what it began does not count
  Session* const session = run.fleet.Of(client);
  if (session != nullptr) run.fleet.SetAside(*session, until_us == 0 ? 0 : run.MonotonicAt(until_us));
  return absl::OkStatus();
}

absl::Status ReadmitDue(EngineState& run) {
  for (int64_t client : run.fleet.DueReadmissions(run.MonotonicNow())) {
    TERSE_RETURN_IF_ERROR(SetAside(run, client, 0, "its time is over"));
  }
  return absl::OkStatus();
}

}  // namespace terse
