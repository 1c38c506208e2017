// One connected client, as the engine sees it.
#ifndef TERSE_COORDINATOR_SESSION_H_
#define TERSE_COORDINATOR_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/types/optional.h"
#include "coordinator/client_link.h"
#include "coordinator/events.h"
#include "core/id128.h"

namespace terse {

// Lives from Connected to Disconnected, and is owned by the Fleet. What decides whether the client can take part in a
// round is private: the Fleet changes it, and keeps its groups in step.
class Session {
 public:
  Session(SessionId id, std::shared_ptr<ClientLink> link) : link(std::move(link)), id_(id) {}

  const std::shared_ptr<ClientLink> link;
  std::string name;
  Id128 process;  // of the client, with the number of this connection of it, both as it checked in
  uint32_t connection = 0;
  bool is_relay = false;         // as it checked in
  bool said_ready = false;       // so samples and layout are known
  bool applied_unheard = false;  // an update of its was applied between its check-in and its Ready
  Id128 last_applied;
  int64_t samples = 0;            // of its training data; 0: it has not said
  int64_t steps_done = 0;         // its last report of progress in assigned_round()
  std::string device;             // where it trains; empty: it has not said
  absl::optional<int> norm_code;  // as its newest update said it; nullopt: none has
  int drifts = 0;                 // how often the model that it says it holds was not the run's
  WireBytes booked;               // part of link->Wire() that is in the book

  SessionId id() const { return id_; }
  // -1 until its check-in was accepted, and after another connection took its name.
  int64_t client() const { return client_; }
  // Whatever it still says is not heard.
  bool refused() const { return refused_; }
  // Version of the weights that the client holds, or will hold once it has read what was sent; nullopt while it loads.
  absl::optional<int64_t> version() const { return version_; }
  // A part of the log is on its way; the rest follows once it has left.
  bool draining() const { return draining_; }
  // It lacks more than the log gives it, and a checkpoint is being written.
  bool awaits_checkpoint() const { return awaits_checkpoint_; }
  // The round that it works for; 0 once its update came, and before.
  int64_t assigned_round() const { return assigned_round_; }
  // The round of an update that it sealed on an earlier connection and will send again; 0: none.
  int64_t owes_round() const { return owes_round_; }
  // By the monotonic clock; 0: it may take part.
  int64_t set_aside_until_us() const { return set_aside_until_us_; }
  // Whether it works on nothing and is not set aside.
  bool IsFree() const { return assigned_round_ == 0 && owes_round_ == 0 && set_aside_until_us_ == 0 && !refused_; }

 private:
  friend class Fleet;

  const SessionId id_;
  int64_t client_ = -1;
  bool refused_ = false;
  absl::optional<int64_t> version_;
  bool draining_ = false;
  bool awaits_checkpoint_ = false;
  int64_t assigned_round_ = 0;
  int64_t owes_round_ = 0;
  int64_t set_aside_until_us_ = 0;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_SESSION_H_
