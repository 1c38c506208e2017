// The inputs of a round's step on the server.
#ifndef TERSE_COORDINATOR_ROUND_INPUTS_H_
#define TERSE_COORDINATOR_ROUND_INPUTS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "compression/bundle.h"
#include "core/cohort.h"

namespace terse {

struct EngineState;
struct ReceivedUpdate;
struct Update;

// Views of the round's updates, which must not change meanwhile; those of a bundle one by one. As at
// ServerStep::MakeStep.
struct RoundInputs {
  std::vector<absl::string_view> messages;
  std::vector<int64_t> samples;  // empty: the plain average
  int64_t total = 0;             // that they are shares of; 0: their sum
};

// Those of the open or closed round. An update of a relay weighs as much as the clients that it stands for; a stale one
// weighs less (staleness.h).
RoundInputs InputsOf(const EngineState& run);

// The clients that an update stands for: the sender itself, or those below it.
CohortFacts CohortOf(const ReceivedUpdate& received);

// The update, or all that are in it where it is a bundle (compression/bundle.h), with what each stands for.
std::vector<BundledUpdate> PartsOf(const ReceivedUpdate& received);
// The same without those that are left out.
std::vector<BundledUpdate> CountedPartsOf(const ReceivedUpdate& received);
// Whether all of them were made with that choice (compression/choice_codec.h).
bool HasChoice(const Update& update, int64_t choice);

}  // namespace terse

#endif  // TERSE_COORDINATOR_ROUND_INPUTS_H_
