// Decides how long a round waits for clients that are not connected: those whose connection was lost just now come back
// by themselves, and those that are gone should not hold the others up.
#ifndef TERSE_COORDINATOR_ABSENCE_H_
#define TERSE_COORDINATOR_ABSENCE_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "coordinator/run_context.h"

namespace terse {

// A client whose connection breaks tries again after 0.5 s, and after twice as long each time: in ten seconds four
// times. After the start of the coordinator's process, all of them are on their way for as long.
inline constexpr int64_t kReturnMicros = 10'000'000;

// The session ended: its client may come back. Nobody waits for one that is set aside.
void NoteAbsence(RunContext& run, const Session& session);

// Returns when nobody is on the way any more, by the monotonic clock: no connected client for which `pending` is true,
// and no absent client that may still come back and for which `wanted` is true. That is in the past when it is so
// already, and the largest number while a connected client is on the way. Neither function is asked about sessions that
// are refused or set aside. O(sessions).
int64_t NobodyComesMicros(const RunContext& run, absl::FunctionRef<bool(const Session&)> pending,
                          absl::FunctionRef<bool(int64_t client)> wanted);

}  // namespace terse

#endif  // TERSE_COORDINATOR_ABSENCE_H_
