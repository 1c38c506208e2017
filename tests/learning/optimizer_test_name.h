// Names and prints for tests that run once per optimizer.
#ifndef TERSE_TESTS_LEARNING_OPTIMIZER_TEST_NAME_H_
#define TERSE_TESTS_LEARNING_OPTIMIZER_TEST_NAME_H_

#include <ostream>
#include <string>

#include "core/run_config.h"

namespace terse {

inline std::string OptimizerTestName(const OptimizerSpec& spec) {
  return spec.nesterov ? "nesterov" : spec.momentum == 0 ? spec.name : "momentum";
}

// A learning rate that changes from step to step.
inline double RateAt(uint64_t step) { return 0.001 * static_cast<double>(1 + step % 3); }

// GoogleTest would print the objects' bytes otherwise.
inline void PrintTo(const OptimizerSpec& spec, std::ostream* out) { *out << OptimizerTestName(spec); }
inline void PrintTo(const RunConfig& config, std::ostream* out) { PrintTo(config.train.optimizer, out); }

}  // namespace terse

#endif  // TERSE_TESTS_LEARNING_OPTIMIZER_TEST_NAME_H_
