#include "coordinator/limits.h"

#include <cmath>
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

std::string EvaluationLimits::Take(int64_t round, const Evaluation& evaluation) {
  // Both look at every evaluation: one that reaches a target may come again after a restart.
  const std::string spent = PatienceSpent(round, evaluation);
  const std::string reached = TargetReached(round, evaluation);
  return reached.empty() ? spent : reached;
}

std::string EvaluationLimits::TargetReached(int64_t round, const Evaluation& evaluation) const {
  if (limits_.accuracy > 0 && evaluation.accuracy.has_value() && *evaluation.accuracy >= limits_.accuracy) {
    return absl::StrFormat("target accuracy %g reached: %.4f after round %d", limits_.accuracy, *evaluation.accuracy,
                           round);
  }
  if (limits_.loss > 0 && evaluation.loss <= limits_.loss) {
    return absl::StrFormat("target loss %g reached: %.4g after round %d", limits_.loss, evaluation.loss, round);
  }
  return "";
}

std::string EvaluationLimits::PatienceSpent(int64_t round, const Evaluation& evaluation) {
  if (limits_.patience <= 0) return "";
  if (limits_.patience_metric == PatienceMetric::kAuto) {
    limits_.patience_metric = evaluation.accuracy.has_value() ? PatienceMetric::kAccuracy : PatienceMetric::kLoss;
  }
  const bool by_loss = limits_.patience_metric == PatienceMetric::kLoss;
  const double figure = by_loss ? evaluation.loss : evaluation.accuracy.value_or(std::nan(""));
  const double gain = !best_.has_value() ? HUGE_VAL : by_loss ? *best_ - figure : figure - *best_;
  if (std::isfinite(figure) && gain > limits_.min_delta) {
    best_ = figure;
    best_round_ = round;
    without_improvement_ = 0;
    return "";
  }
  if (++without_improvement_ < limits_.patience) return "";
  const char* const name = by_loss ? "test loss" : "test accuracy";
  const std::string evaluations =
      absl::StrCat(without_improvement_, without_improvement_ == 1 ? " evaluation" : " evaluations");
  if (!best_.has_value()) return absl::StrCat("no usable ", name, " in ", evaluations);
  return absl::StrFormat("%s has not improved in %s: the best was %.4g after round %d", name, evaluations, *best_,
                         best_round_);
}

}  // namespace terse
