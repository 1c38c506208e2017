// Every codec over the range of the setting that trades bits for distortion.
#ifndef TERSE_BENCH_SWEEP_H_
#define TERSE_BENCH_SWEEP_H_

#include <string>
#include <vector>

#include "core/run_config.h"

namespace terse {

struct SweepPoint {
  std::string curve;    // "sbc", or "qsgd elias" where a codec has several
  std::string setting;  // "density=0.01"; empty where there is none
  CodecSpec spec;
};

// All points, curve by curve; a codec that is not swept has one. `scale` is the root mean square of what will be
// encoded: the thresholds follow it.
std::vector<SweepPoint> CodecSweep(double scale);

}  // namespace terse

#endif  // TERSE_BENCH_SWEEP_H_
