// Tries a trainer against the trainer protocol (docs/TRAINER.md).
#ifndef TERSE_TRAINER_CONFORMANCE_H_
#define TERSE_TRAINER_CONFORMANCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace terse {

struct ConformanceOptions {
  std::string command;  // starts the trainer, several times
  int64_t steps = 2;    // of each training
  double seconds = 60;  // that an answer may take
};

// One thing that was tried. A note is no fault: something that the trainer does without.
struct TrainerFinding {
  enum class Kind { kPassed, kFailed, kNote };
  Kind kind = Kind::kPassed;
  std::string check;   // "answers open"
  std::string detail;  // of a failure or a note: what was seen; else empty
};

// Starts the trainer and tries everything in turn; what cannot be tried after a failure is left out. At least one
// finding.
std::vector<TrainerFinding> CheckTrainer(const ConformanceOptions& options);

}  // namespace terse

#endif  // TERSE_TRAINER_CONFORMANCE_H_
