// The inputs of a round's step on the server.
#ifndef TERSE_COORDINATOR_ROUND_INPUTS_H_
#define TERSE_COORDINATOR_ROUND_INPUTS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace terse {

// Views of the round's updates, which must not change meanwhile; as at ServerStep::MakeStep.
struct RoundInputs {
  std::vector<absl::string_view> messages;
  std::vector<int64_t> samples;  // empty: the plain average
  int64_t total = 0;             // that they are shares of; 0: their sum
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_ROUND_INPUTS_H_
