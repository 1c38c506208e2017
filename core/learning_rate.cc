#include "core/learning_rate.h"

#include <algorithm>

namespace terse {

int64_t DecaysBefore(const LearningRateSchedule& schedule, int64_t iteration) {
  int64_t decays =
      std::count_if(schedule.at.begin(), schedule.at.end(), [iteration](int64_t at) { return at <= iteration; });
  if (schedule.every > 0 && iteration >= schedule.from) decays += 1 + (iteration - schedule.from) / schedule.every;
  return decays;
}

double LearningRateAt(const TrainSpec& train, int64_t iteration) {
  double rate = train.optimizer.learning_rate;
  // This multiplies instead of taking a power: products of the same factors are the same bits on every machine.
  for (int64_t decays = DecaysBefore(train.schedule, iteration); decays > 0; --decays) rate *= train.schedule.factor;
  return rate;
}

}  // namespace terse
