#include "tests/testing/histories.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compression/update_history.h"
#include "core/status.h"

namespace terse {
namespace {

absl::StatusOr<UpdateHistory> Parsed(const Codec& codec, const std::string& state) {
  if (state.empty()) return UpdateHistory(*codec.PackedLayout());
  return UpdateHistory::Parse(*codec.PackedLayout(), state);
}

}  // namespace

absl::Status CheckHistories(RunStore* store, const Codec& codec, int64_t client, const ClientState& state) {
  TERSE_ASSIGN_OR_RETURN(const ClientRecord row, store->GetClient(client));
  TERSE_ASSIGN_OR_RETURN(const StoredState stored, state.Read());
  const bool settles = stored.sealed.has_value() && stored.sealed->update_id == row.last_applied;
  if (state.lost() || (!settles && stored.prev_applied != row.last_applied)) return absl::OkStatus();

  TERSE_ASSIGN_OR_RETURN(UpdateHistory ours, Parsed(codec, stored.history));
  if (!stored.minus.empty()) TERSE_RETURN_IF_ERROR(codec.AddToHistory(stored.minus, &ours));
  if (settles) TERSE_RETURN_IF_ERROR(codec.AddToHistory(stored.sealed->message, &ours));

  TERSE_ASSIGN_OR_RETURN(const HistoryRecord record, store->ReadHistory(client));
  TERSE_ASSIGN_OR_RETURN(UpdateHistory theirs, Parsed(codec, record.state));
  for (const std::string& message : record.log) TERSE_RETURN_IF_ERROR(codec.AddToHistory(message, &theirs));

  if (ours.Serialize() == theirs.Serialize()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("client ", client, " and the coordinator, who has ", record.count(),
                                          " updates, do not hold the same history"));
}

}  // namespace terse
