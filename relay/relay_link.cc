#include "relay/relay_link.h"

#include <utility>

#include "core/status.h"
#include "storage/run_store.h"

namespace terse {

absl::Status RelayLink::Send(const FromClient& message) {
  if (const auto* check_in = std::get_if<CheckIn>(&message)) {
    CheckIn relay = *check_in;
    relay.relay = true;
    return connection_->Send(relay);
  }
  if (const auto* ready = std::get_if<Ready>(&message)) {
    // A model that the run here has not got is of no use to it, and comes again, for both.
    if (ready->version.has_value() && !desk_->Reaches(*ready->version)) {
      Ready without = *ready;
      without.version = absl::nullopt;
      without.model_hash = Id128();
      return connection_->Send(without);
    }
  }
  if (const auto* update = std::get_if<Update>(&message)) {
    Update told = *update;
    told.below = desk_->Below();
    return connection_->Send(told);
  }
  return connection_->Send(message);
}

absl::StatusOr<std::string> RelayLink::DownloadCheckpoint(Id128 lineage, int64_t version, int64_t max_bytes) {
  TERSE_ASSIGN_OR_RETURN(std::string bytes, connection_->DownloadCheckpoint(lineage, version, max_bytes));
  absl::StatusOr<Checkpoint> checkpoint = ParseCheckpoint(bytes);
  // The session refuses a checkpoint that is damaged.
  if (checkpoint.ok() && static_cast<int64_t>(checkpoint->weights.size()) == desk_->welcome().layout->size()) {
    desk_->TakeModel(checkpoint->version, std::move(checkpoint->weights));
  }
  return bytes;
}

absl::StatusOr<FromServer> RelayLink::Receive() {
  TERSE_ASSIGN_OR_RETURN(FromServer message, connection_->Receive());
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    if (welcome->layout == nullptr) {
      return absl::FailedPreconditionError(
          "the coordinator above does not know relays: install the same release there");
    }
    desk_->Join(*welcome);
  } else if (const auto* downstream = std::get_if<Downstream>(&message)) {
    desk_->TakeMessage(*downstream);
  } else if (const auto* assignment = std::get_if<Assignment>(&message)) {
    desk_->TakeChoice(assignment->choice);
  }
  return message;
}

}  // namespace terse
