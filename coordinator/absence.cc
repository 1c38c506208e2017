#include "coordinator/absence.h"

#include <algorithm>
#include <limits>

namespace terse {

void NoteAbsence(RunContext& run, const Session& session) {
  const int64_t now = run.MonotonicNow();
  for (auto it = run.left_us.begin(); it != run.left_us.end();) {
    it = it->second + kReturnMicros <= now ? run.left_us.erase(it) : std::next(it);
  }
  if (session.client >= 0 && session.set_aside_until_us == 0) run.left_us[session.client] = now;
}

int64_t NobodyComesMicros(const RunContext& run, absl::FunctionRef<bool(const Session&)> pending,
                          absl::FunctionRef<bool(int64_t client)> wanted) {
  for (const auto& [id, session] : run.sessions) {
    const bool counts = session.client >= 0 && !session.refused && session.set_aside_until_us == 0;
    if (counts && pending(session)) return std::numeric_limits<int64_t>::max();
  }
  int64_t until = run.resumed_us + kReturnMicros;
  for (const auto& [client, left_us] : run.left_us) {
    if (wanted(client)) until = std::max(until, left_us + kReturnMicros);
  }
  return until;
}

}  // namespace terse
