#include "client/rpc/metered_state.h"

#include <utility>

namespace terse {
namespace {

constexpr const char* kWatchedCalls[] = {"Seal", "Settle"};

}  // namespace

MeteredState::MeteredState(std::unique_ptr<ClientState> state, prometheus::Registry* registry)
    : state_(std::move(state)), calls_("terse_client_state", "the client's state", {}, kWatchedCalls, registry) {}

absl::StatusOr<StoredState> MeteredState::Read() const {
  absl::StatusOr<StoredState> read = absl::InternalError("the state was not asked");
  calls_.Around("Read", [&] { return (read = state_->Read()).status(); }).IgnoreError();  // `read` has it
  return read;
}

absl::Status MeteredState::Begin(Id128 lineage, Id128 family, Durability durability) {
  return calls_.Around("Begin", [&] { return state_->Begin(lineage, family, durability); });
}

absl::StatusOr<int64_t> MeteredState::Move(Id128 lineage, absl::Span<const float> dense) {
  absl::StatusOr<int64_t> lost = absl::InternalError("the state was not asked");
  calls_.Around("Move", [&] { return (lost = state_->Move(lineage, dense)).status(); }).IgnoreError();  // `lost` has it
  return lost;
}

absl::Status MeteredState::Seal(absl::Span<const float> dense, SealedUpdate update, std::string trainer_state,
                                std::string history) {
  return calls_.Around(
      "Seal", [&] { return state_->Seal(dense, std::move(update), std::move(trainer_state), std::move(history)); });
}

absl::Status MeteredState::Settle(bool applied) {
  return calls_.Around("Settle", [&] { return state_->Settle(applied); });
}

absl::Status MeteredState::Reset(Id128 last_applied) {
  return calls_.Around("Reset", [&] { return state_->Reset(last_applied); });
}

absl::Status MeteredState::Flush() {
  return calls_.Around("Flush", [&] { return state_->Flush(); });
}

absl::Status MeteredState::SaveModel(const CachedModel& model) {
  return calls_.Around("SaveModel", [&] { return state_->SaveModel(model); });
}

absl::Status MeteredState::SaveModule(absl::string_view bytes) {
  return calls_.Around("SaveModule", [&] { return state_->SaveModule(bytes); });
}

}  // namespace terse
