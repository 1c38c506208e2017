// The learning rate of every iteration of a run.
#ifndef TERSE_CORE_LEARNING_RATE_H_
#define TERSE_CORE_LEARNING_RATE_H_

#include <cstdint>

#include "core/run_config.h"

namespace terse {

// Returns how often the rate has decayed when `iteration` (from 0) begins.
int64_t DecaysBefore(const LearningRateSchedule& schedule, int64_t iteration);

// The rate of the optimizer step of that iteration: learning_rate * factor^decays. A round of several local steps may
// see several rates.
double LearningRateAt(const TrainSpec& train, int64_t iteration);

}  // namespace terse

#endif  // TERSE_CORE_LEARNING_RATE_H_
