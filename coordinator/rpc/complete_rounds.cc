#include "coordinator/rpc/complete_rounds.h"

#include <algorithm>

namespace terse {
namespace {

// Whether everything that will be known about a settled round is known. The view is no newer than the round's record:
// an evaluation that it no longer waits for is in the record.
bool IsComplete(const RunHost& run, const EngineView& view, const RoundRecord& round, bool run_ended) {
  if (round.state == RoundState::kAborted) return true;
  if (round.state != RoundState::kCommitted) return false;
  if (run_ended || round.evaluated() || !run.evaluates()) return true;
  // A run that ends early has its head evaluated, due or not, and may end at any time.
  const int64_t version = round.base_version + 1;
  if (version >= view.head.version) return false;
  // An evaluator that is slow is some rounds behind.
  if (view.evaluating == round.id) return false;
  // An evaluation that a restart lost does not come any more; a later one is then on its way.
  if (view.head.version >= version + run.config().evaluate_every) return true;
  return version % run.config().evaluate_every != 0;
}

}  // namespace

bool HasEnded(RunState state) { return state == RunState::kFinished || state == RunState::kStopped; }

size_t CountComplete(const RunHost& run, const EngineView& view, const std::vector<RoundRecord>& rounds,
                     bool run_ended) {
  const auto end = std::find_if_not(rounds.begin(), rounds.end(),
                                    [&](const RoundRecord& round) { return IsComplete(run, view, round, run_ended); });
  return end - rounds.begin();
}

}  // namespace terse
