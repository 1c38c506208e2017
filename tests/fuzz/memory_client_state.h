// A client's state in memory, which watches what the session engine does with it.
#ifndef TERSE_TESTS_FUZZ_MEMORY_CLIENT_STATE_H_
#define TERSE_TESTS_FUZZ_MEMORY_CLIENT_STATE_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/session_messages.h"
#include "storage/client_state.h"
#include "storage/parted_lineages.h"
#include "tests/fuzz/input.h"

namespace terse {

// Keeps the rules of storage/client_state.h and never fails otherwise. A process that ends leaves all of it behind.
class MemoryClientState : public ClientState {
 public:
  const StoredHead& state() const override { return state_; }
  const StoredState& whole() const { return state_; }
  absl::StatusOr<StoredState> Read() const override { return state_; }
  bool lost() const override { return false; }

  absl::Status Begin(Id128 lineage, Id128 family, Durability durability) override {
    if (lineage.IsZero() || family.IsZero()) return absl::InvalidArgumentError("a run needs a lineage and a family");
    if (lineage == state_.lineage && family == state_.family) return absl::OkStatus();
    state_ = StoredState();
    state_.lineage = lineage;
    state_.family = family;
    ++fresh;
    ++histories;
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Move(Id128 lineage, absl::Span<const float> dense) override {
    Require(!state_.lineage.IsZero(), "who moves has a lineage to leave");
    if (lineage.IsZero() || lineage == state_.lineage) return absl::InvalidArgumentError("a client moves to another");
    const int64_t lost = MoveHead(lineage, &state_);
    state_.dense = std::vector<float>(dense.begin(), dense.end());
    state_.has_dense = !dense.empty();
    state_.history.clear();
    ++histories;
    return lost;
  }

  absl::Status Seal(absl::Span<const float> dense, SealedUpdate update, std::string trainer_state,
                    std::string history) override {
    Require(!state_.lineage.IsZero() && !state_.sealed.has_value(), "no new update is sealed over another");
    Require(!update.update_id.IsZero(), "a sealed update has an id");
    ++state_.generation;
    state_.dense = std::vector<float>(dense.begin(), dense.end());
    state_.has_dense = !dense.empty();
    state_.minus.clear();
    state_.sealed = std::move(update);
    state_.trainer_state = std::move(trainer_state);
    state_.history = std::move(history);
    return absl::OkStatus();
  }

  absl::Status Settle(bool applied) override {
    Require(state_.sealed.has_value(), "what is settled was sealed");
    const Outcome wanted = applied ? Outcome::kApplied : Outcome::kNotApplied;
    Require(verdict.has_value() && verdict->outcome == wanted && verdict->update_id == state_.sealed->update_id,
            "an update is settled by its verdict and by nothing else");
    if (applied) {
      state_.prev_applied = state_.sealed->update_id;
      state_.minus = std::move(state_.sealed->message);
      if (on_applied) on_applied(state_.minus);
    }
    state_.sealed.reset();
    return absl::OkStatus();
  }

  absl::Status Reset(Id128 last_applied) override {
    Require(verdict.has_value() && verdict->outcome == Outcome::kReset, "a residual is lost because of a RESET only");
    Require(verdict->update_id == (state_.sealed.has_value() ? state_.sealed->update_id : Id128{}),
            "a RESET for another update than the sealed one changes nothing");
    Require(verdict->last_applied == last_applied, "the coordinator says what was applied last");
    state_.dense.clear();
    state_.history.clear();
    state_.has_dense = false;
    state_.minus.clear();
    state_.sealed.reset();
    state_.prev_applied = last_applied;
    ++fresh;
    ++histories;
    return absl::OkStatus();
  }

  absl::Status Flush() override { return absl::OkStatus(); }
  absl::Status SaveModel(const CachedModel& saved) override {
    model_ = saved;
    return absl::OkStatus();
  }
  absl::optional<CachedModel> LoadModel() override { return model_; }
  absl::Status SaveModule(absl::string_view) override { return absl::OkStatus(); }
  absl::optional<std::string> LoadModule(const ModelSpec&) override { return absl::nullopt; }

  // The verdict in the message that the client is reading; nullopt in all others.
  absl::optional<Verdict> verdict;
  // Hears every message that was settled as applied.
  std::function<void(const std::string& message)> on_applied;
  // How often the residual became zero.
  int fresh = 0;
  // How often the history of applied updates began anew.
  int histories = 0;

 private:
  StoredState state_;
  absl::optional<CachedModel> model_;
};

}  // namespace terse

#endif  // TERSE_TESTS_FUZZ_MEMORY_CLIENT_STATE_H_
