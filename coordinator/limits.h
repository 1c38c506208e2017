// The limits that end a run before its last round.
#ifndef TERSE_COORDINATOR_LIMITS_H_
#define TERSE_COORDINATOR_LIMITS_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "core/run_config.h"
#include "core/trainer.h"

namespace terse {

// Returns when a run that was created at `created_us` has used its time, in microseconds of the same clock; the largest
// number for never.
int64_t TimeLimitMicros(const RunLimits& limits, int64_t created_us);

// Return why the run is over, one line for people; empty while it is not.
std::string TimeIsUp(const RunLimits& limits, int64_t created_us, int64_t now_us);
std::string IterationsDone(const RunLimits& limits, int64_t iterations);

// The targets and the patience of a run: the limits that its evaluations decide. A function of the evaluations, so that
// a coordinator that starts again comes to the same end; it has forgotten evaluations without any number, which no
// store keeps. Thread-compatible.
class EvaluationLimits {
 public:
  explicit EvaluationLimits(const RunLimits& limits = {}) : limits_(limits) {}

  // Takes an evaluation, of a later round than all before it. Returns why the run is over, one line for people; empty
  // while it is not. A figure that is not finite, or that is not there, reaches nothing and is no improvement.
  std::string Take(int64_t round, const Evaluation& evaluation);

 private:
  std::string TargetReached(int64_t round, const Evaluation& evaluation) const;
  std::string PatienceSpent(int64_t round, const Evaluation& evaluation);

  RunLimits limits_;
  absl::optional<double> best_;  // of the watched figure; nullopt before the first that is finite
  int64_t best_round_ = 0;
  int64_t without_improvement_ = 0;  // evaluations since then
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_LIMITS_H_
