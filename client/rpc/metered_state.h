// A client's state whose calls are timed for the metrics.
#ifndef TERSE_CLIENT_RPC_METERED_STATE_H_
#define TERSE_CLIENT_RPC_METERED_STATE_H_

#include <prometheus/registry.h>

#include <memory>
#include <string>

#include "storage/client_state.h"
#include "web/call_meter.h"

namespace terse {

// Hands every call on. Calls that read or write the disk are timed as terse_client_state_seconds, and their failures
// are counted as terse_client_state_errors_total. `registry` must outlive it. Not thread-safe, as ClientState.
class MeteredState : public ClientState {
 public:
  MeteredState(std::unique_ptr<ClientState> state, prometheus::Registry* registry);

  const StoredHead& state() const override { return state_->state(); }
  absl::StatusOr<StoredState> Read() const override;
  bool lost() const override { return state_->lost(); }
  absl::Status Begin(Id128 lineage, Id128 family, Durability durability) override;
  absl::StatusOr<int64_t> Move(Id128 lineage, absl::Span<const float> dense) override;
  absl::Status Seal(absl::Span<const float> dense, SealedUpdate update, std::string trainer_state,
                    std::string history) override;
  absl::Status Settle(bool applied) override;
  absl::Status Reset(Id128 last_applied) override;
  absl::Status Flush() override;
  absl::Status SaveModel(const CachedModel& model) override;
  absl::optional<CachedModel> LoadModel() override { return state_->LoadModel(); }
  absl::Status SaveModule(absl::string_view bytes) override;
  absl::optional<std::string> LoadModule(const ModelSpec& model) override { return state_->LoadModule(model); }

 private:
  const std::unique_ptr<ClientState> state_;
  mutable CallMeter calls_;
};

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_METERED_STATE_H_
