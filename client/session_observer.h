// The interface through which a session tells what it did, for metrics.
#ifndef TERSE_CLIENT_SESSION_OBSERVER_H_
#define TERSE_CLIENT_SESSION_OBSERVER_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "core/session_messages.h"

namespace terse {

// The work behind an update.
struct SealedWork {
  int64_t steps = 0;     // local ones
  int64_t train_us = 0;  // for all of them
  float loss = 0;        // their mean
};

// Called in the session's thread, which waits for it, and only for what is durable already (with relaxed durability:
// for what is in the state already).
class SessionObserver {
 public:
  virtual ~SessionObserver() = default;

  // A run was adopted, with what was stored of it: whether an update is sealed, and the L2 norm of the residual, which
  // a sealed update is still part of.
  virtual void OnJoined(bool sealed, double residual_norm) = 0;
  // The version of the model that is held; nullopt while there is none. Also called when it did not change.
  virtual void OnVersion(absl::optional<int64_t> version) = 0;
  virtual void OnSealed(const SealedWork& work) = 0;
  // The sealed update was APPLIED or NOT_APPLIED, or everything was RESET; and the L2 norm of the residual then.
  virtual void OnSettled(Outcome outcome, double residual_norm) = 0;
};

}  // namespace terse

#endif  // TERSE_CLIENT_SESSION_OBSERVER_H_
