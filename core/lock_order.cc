#include "core/lock_order.h"

#include "absl/synchronization/mutex.h"

namespace terse {

void SkipLockOrderChecks() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

}  // namespace terse
