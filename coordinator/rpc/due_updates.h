// Which updates a session was asked for: what it sends beyond them is not worth decoding.
#ifndef TERSE_COORDINATOR_RPC_DUE_UPDATES_H_
#define TERSE_COORDINATOR_RPC_DUE_UPDATES_H_

#include <cstdint>

#include "core/session_messages.h"

namespace terse {

// Decides which updates of one session are decoded, from the messages of both ends. Decoding an update costs far more
// than sending one, so each assignment pays for one decoding, and so does an update that was pending at the check-in. A
// client sends an update again on the same connection only after it was decoded there, and the answer to that needs its
// id alone. A value type.
class DueUpdates {
 public:
  void OnReceived(const CheckIn& message) {
    pending_id_ = message.pending_update_id;
    pending_round_ = message.pending_round;
  }
  void OnSent(const FromServer& message) {
    if (const auto* assignment = std::get_if<Assignment>(&message)) {
      // Being given the same work again, as after another Ready, pays for nothing.
      if (assignment->round > newest_round_) round_ = newest_round_ = assignment->round;
    } else if (const auto* welcome = std::get_if<Welcome>(&message)) {
      const bool is_pending = welcome->verdict.has_value() && welcome->verdict->outcome == Outcome::kPending;
      if (!is_pending) pending_id_ = Id128{};
    }
  }

  // Whether the update is one of those; it is none any more.
  bool Take(const Update& update) {
    if (!pending_id_.IsZero() && update.update_id == pending_id_ && update.round == pending_round_) {
      pending_id_ = Id128{};
      return true;
    }
    if (update.round != round_) return false;
    round_ = 0;
    return true;
  }

 private:
  int64_t round_ = 0;         // that it was given and has not delivered; 0: none
  int64_t newest_round_ = 0;  // that it was ever given
  Id128 pending_id_;          // zero: none
  int64_t pending_round_ = 0;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_DUE_UPDATES_H_
