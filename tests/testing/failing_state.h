// A ClientState that fails on demand.
#ifndef TERSE_TESTS_TESTING_FAILING_STATE_H_
#define TERSE_TESTS_TESTING_FAILING_STATE_H_

#include <string>
#include <utility>

#include "storage/client_state.h"

namespace terse {

// A state directory whose disk fails where the test says.
class FailingState : public ClientState {
 public:
  explicit FailingState(ClientState* state) : state_(state) {}
  const StoredHead& state() const override { return state_->state(); }
  absl::StatusOr<StoredState> Read() const override {
    if (fail_read) return Failure();
    return state_->Read();
  }
  bool lost() const override { return state_->lost(); }
  absl::Status Begin(Id128 lineage, Id128 family, Durability durability) override {
    return state_->Begin(lineage, family, durability);
  }
  absl::StatusOr<int64_t> Move(Id128 lineage, absl::Span<const float> dense) override {
    if (fail_move) return Failure();
    return state_->Move(lineage, dense);
  }
  absl::Status Seal(absl::Span<const float> dense, SealedUpdate update, std::string trainer_state,
                    std::string history) override {
    return fail_seal ? Failure() : state_->Seal(dense, std::move(update), std::move(trainer_state), std::move(history));
  }
  absl::Status Settle(bool applied) override { return state_->Settle(applied); }
  absl::Status Reset(Id128 last_applied) override { return state_->Reset(last_applied); }
  absl::Status Flush() override { return state_->Flush(); }
  absl::Status SaveModel(const CachedModel& model) override { return state_->SaveModel(model); }
  absl::optional<CachedModel> LoadModel() override { return state_->LoadModel(); }
  absl::Status SaveModule(absl::string_view bytes) override { return state_->SaveModule(bytes); }
  absl::optional<std::string> LoadModule(const ModelSpec& model) override { return state_->LoadModule(model); }

  bool fail_read = false;
  bool fail_seal = false;
  bool fail_move = false;

 private:
  static absl::Status Failure() { return absl::UnavailableError("input/output error; check the disk"); }

  ClientState* const state_;
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_FAILING_STATE_H_
