// The run that a load is about.
#ifndef TERSE_BENCH_FLEET_LOAD_RUN_H_
#define TERSE_BENCH_FLEET_LOAD_RUN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace terse {

struct LoadRunOptions {
  int64_t clients = 0;
  int64_t relays = 0;      // that they are behind; 0: none
  int64_t parameters = 0;  // wanted
  double density = 0;      // of the updates, and of the downstream codec where there is one
  int64_t rounds = 0;      // that are measured; the run has more, and is stopped after these
  std::string downstream;  // empty: the product's default
};

struct LoadRun {
  std::string run_file;
  std::string data;        // the coordinator's data directory; empty: the embedded data set is enough
  std::string model;       // name of its row in the model table
  int64_t parameters = 0;  // that it has
};

// Writes run file and data into `directory`, which is there. The model is the row of the model table that has just so
// many parameters, lenet5_caffe's 431,080, or else a perceptron, with as many inputs as come nearest. The
// perceptron's data are one example; nothing is evaluated while the load lasts. All other settings are the product's
// defaults, but for a deadline of a day: a slow round is to be measured, not cut. Statuses of FileSystem, and
// INVALID_ARGUMENT for settings that the product refuses.
absl::StatusOr<LoadRun> WriteLoadRun(const LoadRunOptions& options, const std::string& directory);

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_LOAD_RUN_H_
