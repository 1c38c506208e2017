// The invariants of docs/PROTOCOL.md as checks on what is stored, independent of the engines' own bookkeeping.
#ifndef TERSE_TESTS_TESTING_CONSERVATION_H_
#define TERSE_TESTS_TESTING_CONSERVATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compression/codec.h"
#include "compression/downstream.h"
#include "core/run_config.h"
#include "storage/client_state.h"
#include "storage/run_store.h"

namespace terse {

// A client's books start at zero, or after its last RESET: with the seal number `generation` and after `version`.
struct Baseline {
  int64_t generation = 0;
  int64_t version = 0;
};

// The updates inside a downstream message of mode forward, as compression/FORMAT.md describes it.
absl::StatusOr<std::vector<absl::string_view>> UpdatesOfForward(absl::string_view downstream);

// Returns the message that forwarded the updates that led to a version: the aggregate that the store kept of them, or
// the downstream message itself.
absl::StatusOr<std::string> ForwardOf(RunStore* store, const LogMessage& entry);

// Adds to `sum`, `times` over, what a client, or a relay, has of its training for itself alone: its residual, and what
// it has sealed or parted with and nobody has applied. `is_applied` says whether an update counts in the books of the
// coordinator or relay for which it was sealed. Fails when a message does not decode.
absl::Status AddHeldBack(const Codec& codec, const StoredState& state, absl::FunctionRef<bool(Id128)> is_applied,
                         double times, std::vector<double>* sum);

// Applied updates + what the client holds back - sealed deltas, element by element, for a client whose applied updates
// are all in `store`; all zero when CheckConservation passes. INTERNAL when
// the two sides do not agree about the last update, or the log does not fit the rounds.
absl::StatusOr<std::vector<double>> ConservationDifference(RunStore* store, const Codec& codec, int64_t client,
                                                           const StoredState& state, const Baseline& baseline);

// I1 and I2: sum of the client's committed updates since the baseline + what it holds back == sum of the deltas that it
// sealed since then, bit for bit. Needs the whole log, trainers of tests/testing/grid_trainer.h and either mode
// forward or a server with a state, whose aggregates say what was applied. Reads the stored state, so the client should
// be down. INTERNAL naming the first element that differs.
absl::Status CheckConservation(RunStore* store, const Codec& codec, int64_t client, const StoredState& state,
                               const Baseline& baseline);

// I2 where what was not applied is dropped (codec.feedback = 'discard'): each of the client's committed updates since
// the baseline is one that it sealed since then, and of a later seal than the one before. The place of the first that
// is not, or -1. `sealed_as(step, message)` says whether the seal number `step` may have sent the message.
using SealedAs = std::function<bool(int64_t step, absl::string_view message)>;
absl::StatusOr<int64_t> FirstNotSealed(RunStore* store, int64_t client, const StoredState& state,
                                       const Baseline& baseline, const SealedAs& sealed_as);

// I3: replaying the whole log from `initial` gives every logged hash and the head's.
absl::Status CheckReplay(RunStore* store, const RunConfig& config, const DownstreamCodecs& codecs,
                         std::vector<float> initial);

// I3 on a client: the model that it keeps on its disk is the one that the log names for its version.
absl::Status CheckKeptModel(RunStore* store, const CachedModel& model);

// I3 for a server with a state: repeating every round's step from the first gives every logged message. Needs the whole
// log and all aggregates; nothing to check without a state.
absl::Status CheckServerSteps(RunStore* store, const RunConfig& config, const DownstreamCodecs& codecs,
                              absl::Span<const float> initial);

// The plan of every round is what the run's controller decides that saw the committed rounds before it, however often
// the coordinator restarted between; no round has one without a controller.
absl::Status CheckPlans(RunStore* store, const RunConfig& config);

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_CONSERVATION_H_
