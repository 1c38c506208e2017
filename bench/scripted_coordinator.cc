#include "bench/scripted_coordinator.h"

#include "core/file_system.h"

namespace terse {

absl::Status ScriptedCoordinator::Send(const FromClient& message) {
  if (std::holds_alternative<CheckIn>(message)) {
    Welcome welcome;
    welcome.lineage = {1, 1};
    welcome.config = config_;
    replies_.push(std::move(welcome));
  } else if (const auto* ready = std::get_if<Ready>(&message)) {
    ready->version.has_value() ? NextRound() : replies_.push(Resync{0, "it has none"});
  } else if (const auto* update = std::get_if<Update>(&message)) {
    replies_.push(Receipt{update->update_id});
    replies_.push(Verdict{Outcome::kApplied, update->update_id, {}, ""});
    NextRound();
  }
  return absl::OkStatus();
}

void ScriptedCoordinator::NextRound() {
  if (round_ == rounds_) {
    replies_.push(Finished{"all rounds are done"});
  } else {
    replies_.push(Assignment{++round_, 0, config_->train.local_steps});
  }
}

absl::StatusOr<FromServer> ScriptedCoordinator::Receive() {
  if (replies_.empty()) return absl::UnavailableError("the client waits for a message that nobody sends");
  FromServer next = std::move(replies_.front());
  replies_.pop();
  return next;
}

absl::StatusOr<std::string> ScriptedCoordinator::DownloadCheckpoint(Id128, int64_t, int64_t) {
  return PosixFiles().Read(checkpoint_);
}

absl::StatusOr<std::string> ScriptedCoordinator::DownloadModule(Id128, int64_t) {
  return absl::NotFoundError("the run has no TorchScript file");
}

}  // namespace terse
