#include "coordinator/limits.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace terse {

int64_t TimeLimitMicros(const RunLimits& limits, int64_t created_us) {
  if (limits.seconds <= 0) return std::numeric_limits<int64_t>::max();
  return created_us + static_cast<int64_t>(limits.seconds * 1e6);
}

std::string TimeIsUp(const RunLimits& limits, int64_t created_us, int64_t now_us) {
  if (now_us < TimeLimitMicros(limits, created_us)) return "";
  return absl::StrCat("the run has used its ", limits.seconds, " seconds");
}

std::string IterationsDone(const RunLimits& limits, int64_t iterations) {
  if (limits.iterations <= 0 || iterations < limits.iterations) return "";
  return absl::StrCat("the run's ", limits.iterations, " iterations are done");
}

std::string TargetReached(const RunLimits& limits, int64_t round, const Evaluation& evaluation) {
  if (limits.accuracy > 0 && evaluation.accuracy.has_value() && *evaluation.accuracy >= limits.accuracy) {
    return absl::StrFormat("target accuracy %g reached: %.4f after round %d", limits.accuracy, *evaluation.accuracy,
                           round);
  }
  if (limits.loss > 0 && evaluation.loss <= limits.loss) {
    return absl::StrFormat("target loss %g reached: %.4g after round %d", limits.loss, evaluation.loss, round);
  }
  return "";
}

}  // namespace terse
