#include "coordinator/control/schedule.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/codec_choices.h"

namespace terse {

ScheduleController::ScheduleController(const RunConfig& config)
    : control_(config.control),
      local_steps_(config.train.local_steps),
      stages_(StagesOf(config.control)),
      choices_(UpdateChoices(config).size() > 1) {}

int64_t ScheduleController::StageAt(int64_t first_iteration) const {
  if (control_.by == "plateau") return plateau_stage_;
  const int64_t now = control_.by == "iteration" ? first_iteration : committed_;
  return std::upper_bound(control_.at.begin(), control_.at.end(), now) - control_.at.begin();
}

RoundPlan ScheduleController::Decide(int64_t round, int64_t first_iteration) const {
  const int64_t stage = std::min(StageAt(first_iteration), stages_ - 1);
  RoundPlan plan;
  plan.local_steps = control_.local_steps.empty() ? local_steps_ : control_.local_steps[stage];
  plan.choice = choices_ ? stage : 0;
  plan.first_iteration = first_iteration;
  plan.why = absl::StrCat("stage ", stage + 1, " of ", stages_, " by ", control_.by);
  if (!control_.density.empty()) absl::StrAppend(&plan.why, ", density ", control_.density[stage]);
  if (!control_.bits.empty()) absl::StrAppend(&plan.why, ", ", control_.bits[stage], " bits");
  return plan;
}

bool ScheduleController::OnPlateau() const {
  const int64_t patience = control_.patience;
  if (static_cast<int64_t>(losses_.size()) < 2 * patience) return false;
  const auto middle = losses_.end() - patience;
  return !(std::accumulate(middle, losses_.end(), 0.0) < std::accumulate(middle - patience, middle, 0.0));
}

void ScheduleController::Observe(const RoundOutcome& outcome) {
  ++committed_;
  if (control_.by != "plateau" || plateau_stage_ + 1 >= stages_) return;
  losses_.push_back(outcome.train_loss);
  if (static_cast<int64_t>(losses_.size()) > 2 * control_.patience) losses_.erase(losses_.begin());
  if (!OnPlateau()) return;
  ++plateau_stage_;
  losses_.clear();
}

}  // namespace terse
