// Stages that follow each other: fixed local steps, density and bits in each. By the number of the round or of the
// iteration, or when training stops getting better. SBC (Sattler et al. 2018, section II) observes that temporal
// sparsity pays while the learning rate is high, and gradient sparsity after it fell: a schedule can say so.
#ifndef TERSE_COORDINATOR_CONTROL_SCHEDULE_H_
#define TERSE_COORDINATOR_CONTROL_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/control/controller.h"
#include "core/run_config.h"

namespace terse {

// control.name = 'schedule'. By "round" stage i + 1 begins with round at[i], counted in committed rounds from 0, so
// that an aborted round delays nothing; by "iteration" with the first round whose first iteration is at least at[i]. By
// "plateau" a stage ends when the mean training loss of its newest `patience` rounds is not below that of the
// `patience` rounds before them; the next stage counts anew.
class ScheduleController : public Controller {
 public:
  // The configuration obeys the rules of proto/run_config_rules: the lists fit each other.
  explicit ScheduleController(const RunConfig& config);

  RoundPlan Decide(int64_t round, int64_t first_iteration) const override;
  void Observe(const RoundOutcome& outcome) override;

 private:
  int64_t StageAt(int64_t first_iteration) const;
  bool OnPlateau() const;

  const ControlSpec control_;
  const int64_t local_steps_;  // where the control has none
  const int64_t stages_;
  const bool choices_;          // whether the coding changes too
  int64_t committed_ = 0;       // rounds
  int64_t plateau_stage_ = 0;   // by "plateau"
  std::vector<double> losses_;  // of the stage's newest rounds, at most twice the patience
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_CONTROL_SCHEDULE_H_
