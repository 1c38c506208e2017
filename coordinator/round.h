// The open round, or the last settled one: its number, its plan and the updates that came for it. It is one part of the
// engine's state (engine_state.h), and knows neither the fleet nor the model nor the store.
#ifndef TERSE_COORDINATOR_ROUND_H_
#define TERSE_COORDINATOR_ROUND_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/types/optional.h"
#include "core/id128.h"
#include "core/round_plan.h"
#include "core/session_messages.h"

namespace terse {

// An update of the open round, validated.
struct ReceivedUpdate {
  Update update;
  Id128 prev_applied;     // the client's last applied update, after which this one was made
  int64_t samples = 0;    // the client's when the update came
  int64_t staleness = 0;  // versions between the weights that it started from and the head
  int64_t count = 1;      // times that it counts in the average; above 1 only under Mutant::kNoDeduplication
  // Where the update is a bundle (compression/bundle.h): the places in it of the updates that are refused, increasing.
  std::vector<size_t> left_out = {};
};

// Invariants: rounds have the numbers 1, 2, ..., and one opens after the one before is settled; a client has at most
// one update in it; once a round is settled, its updates are gone or belong to the next one. Used from the engine's
// thread only.
class Round {
 public:
  using Updates = absl::btree_map<int64_t, ReceivedUpdate>;

  // Continues from the round that the store holds; `number` is 0 before the first round.
  void Resume(int64_t number, bool open, int64_t opened_us) {
    number_ = resumed_ = number;
    open_ = open;
    opened_us_ = opened_us;
  }
  // Opens the next round, at that Unix time. With nullopt it keeps the plan of the round before.
  void Open(int64_t now_us, absl::optional<RoundPlan> plan) {
    number_ += 1;
    open_ = true;
    closed_ = false;
    opened_us_ = now_us;
    if (plan.has_value()) plan_ = *std::move(plan);
  }
  // Closes the round: it takes no more updates, and has chosen those that it holds.
  void Close() { closed_ = true; }
  // Settles the round, which is committed or aborted: its updates are dropped, or kept for the next round.
  void Settle(bool keep_updates) {
    open_ = closed_ = false;
    if (!keep_updates) updates_.clear();
  }

  int64_t number() const { return number_; }
  // Whether it is not settled yet.
  bool open() const { return open_; }
  // Whether it is closed and not settled yet. Only in a relay do other events come in between.
  bool closed() const { return closed_; }
  int64_t opened_us() const { return opened_us_; }
  // The newest round when this process began. Nothing here tells which clients had work in it.
  int64_t resumed() const { return resumed_; }
  const RoundPlan& plan() const { return plan_; }
  void SetPlan(RoundPlan plan) { plan_ = std::move(plan); }

  // By client index, which is the order of aggregation.
  const Updates& updates() const { return updates_; }
  int64_t size() const { return static_cast<int64_t>(updates_.size()); }
  bool Has(int64_t client) const { return updates_.contains(client); }
  // Returns this client's update, or null when it has sent none.
  ReceivedUpdate* Find(int64_t client) {
    const auto it = updates_.find(client);
    return it == updates_.end() ? nullptr : &it->second;
  }
  void Add(int64_t client, ReceivedUpdate update) { updates_.emplace(client, std::move(update)); }
  void Remove(int64_t client) { updates_.erase(client); }

 private:
  int64_t number_ = 0;
  int64_t resumed_ = 0;
  bool open_ = false;
  bool closed_ = false;
  int64_t opened_us_ = 0;
  RoundPlan plan_;
  Updates updates_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_ROUND_H_
