// The plan of a round: how long its clients train, and which of the run's codings they use for their updates.
#ifndef TERSE_CORE_ROUND_PLAN_H_
#define TERSE_CORE_ROUND_PLAN_H_

#include <cstdint>
#include <string>

namespace terse {

// Made by a controller (coordinator/control) when the round opens, and stored with the round.
struct RoundPlan {
  int64_t local_steps = 0;      // n of SGD_n, SBC Algorithm 1
  int64_t choice = 0;           // index in UpdateChoices (core/codec_choices.h); 0 for a run with a single coding
  int64_t first_iteration = 0;  // of the run, with which this round's training begins
  std::string why = "";         // one line for people

  friend bool operator==(const RoundPlan& a, const RoundPlan& b) {
    return a.local_steps == b.local_steps && a.choice == b.choice && a.first_iteration == b.first_iteration &&
           a.why == b.why;
  }
};

}  // namespace terse

#endif  // TERSE_CORE_ROUND_PLAN_H_
