#include "coordinator/model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/relay_step.h"
#include "core/fault.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr char kRestore[] = ": restore the state directory from a backup";

}  // namespace

absl::Status Model::Recover(const RunConfig& config, const Codec* downstream_codec, bool is_relay, RunStore* store) {
  const auto make = is_relay ? RelayStep::Make : ServerStep::Make;
  TERSE_ASSIGN_OR_RETURN(server_, make(config, {*codec_, downstream_codec}));
  TERSE_ASSIGN_OR_RETURN(start_hash_, store->StartHash());
  TERSE_ASSIGN_OR_RETURN(head_, store->GetHead());
  TERSE_ASSIGN_OR_RETURN(Checkpoint checkpoint, store->ReadNewestCheckpoint());
  checkpoint_version_ = checkpoint.version;
  *weights_ = std::move(checkpoint.weights);
  if (static_cast<int64_t>(weights().size()) != layout().size()) {
    return absl::DataLossError(absl::StrCat("checkpoint ", checkpoint.version, " holds ", weights().size(),
                                            " parameters, the model has ", layout().size()));
  }
  if (server_->state_size() > 0 && checkpoint.version > 0 && checkpoint.server_state.empty()) {
    return absl::DataLossError(
        absl::StrCat("checkpoint ", checkpoint.version, " has no state of the server", kRestore));
  }
  if (Mutated(Mutant::kForgetServerState)) checkpoint.server_state.clear();
  TERSE_RETURN_IF_ERROR(server_->Restore(weights(), checkpoint.server_state));
  // One message at a time: an epoch may lie behind the checkpoint, with a model in each.
  for (int64_t version = checkpoint.version; version < head_.version; ++version) {
    TERSE_ASSIGN_OR_RETURN(const std::vector<LogMessage> log, store->ReadLog(version, version + 1));
    TERSE_RETURN_IF_ERROR(
        Annotate(Replay(log.front(), store), absl::StrCat("replaying the log, version ", version + 1)));
  }
  if (HashWeights(weights()) != head_.model_hash) {
    return absl::DataLossError(absl::StrCat("checkpoint ", checkpoint.version,
                                            " and the log after it do not give version ", head_.version, kRestore));
  }
  TERSE_FAILPOINT("coordinator.restart.replayed");
  return absl::OkStatus();
}

absl::Status Model::Replay(const LogMessage& message, RunStore* store) {
  if (!server_->has_state()) return server_->Apply(message.downstream, absl::MakeSpan(*weights_));
  const absl::StatusOr<std::string> aggregate = store->ReadAggregate(message.version);
  if (!aggregate.ok() && !absl::IsNotFound(aggregate.status())) return aggregate.status();
  absl::StatusOr<std::vector<float>> repeated =
      aggregate.ok() ? server_->Repeat(message.version - 1, weights(), *aggregate, message.downstream)
                     : aggregate.status();
  if (!repeated.ok()) return absl::DataLossError(absl::StrCat(repeated.status().message(), kRestore));
  *weights_ = *std::move(repeated);
  return absl::OkStatus();
}

void Model::Advance(std::vector<float> weights, Id128 hash, std::shared_ptr<const std::string> message) {
  const auto before = std::exchange(weights_, std::make_shared<std::vector<float>>(std::move(weights)));
  // Their memory is free once no other thread reads it, which the event says that comes back from there, and none holds
  // it, which the count says.
  if (readers_ == 0 && before.use_count() == 1) server_->GiveBuffer(std::move(*before));
  head_.version += 1;
  head_.model_hash = hash;
  recent_.Add(head_.version, hash, std::move(message));
}

void Model::Replace(int64_t version, std::vector<float> weights, Id128 hash) {
  weights_ = std::make_shared<std::vector<float>>(std::move(weights));
  head_.version = checkpoint_version_ = version;
  head_.model_hash = hash;
  recent_.Clear();
}

absl::optional<HeldCheckpoint> Model::BeginCheckpoint() {
  if (checkpoint_running_) return absl::nullopt;
  checkpoint_running_ = true;
  ++readers_;
  return HeldCheckpoint{head_.version, head_.model_hash, weights_, server_->state()};
}

}  // namespace terse
