#include "coordinator/round_inputs.h"

#include <algorithm>
#include <cstddef>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "compression/choice_codec.h"
#include "coordinator/engine_state.h"
#include "coordinator/staleness.h"
#include "core/aggregation_facts.h"
#include "core/epochs.h"

namespace terse {
namespace {

// An update as the round's step takes it: one that was received, or one of a bundle.
struct Element {
  BundledUpdate update;
  int64_t count = 1;
  int64_t staleness = 0;
};

std::vector<Element> ElementsOf(const Round& round) {
  std::vector<Element> elements;
  for (const auto& [client, received] : round.updates()) {
    for (const BundledUpdate& part : CountedPartsOf(received)) {
      elements.push_back({part, received.count, received.staleness});
    }
  }
  return elements;
}

// Updates that stand for one client each, as most do, are not weighed: so a bundle counts, bit for bit, as its updates
// would without the relay.
bool WeighsCohorts(const EngineState& run, absl::Span<const Element> elements) {
  if (!FactsOf(run.config->aggregation.rule).takes_weights) return false;
  return absl::c_any_of(elements, [](const Element& one) { return one.update.cohort.clients > 1; });
}

}  // namespace

CohortFacts CohortOf(const ReceivedUpdate& received) {
  if (received.update.cohort.clients > 0) return received.update.cohort;
  return {1, std::max<int64_t>(1, received.samples)};
}

std::vector<BundledUpdate> PartsOf(const ReceivedUpdate& received) {
  const absl::string_view bytes = received.update.bytes();
  if (received.update.cohort.clients > 0 && IsBundle(bytes)) {
    // It was whole when it came. If the disk has damaged it since, it is an update that does not decode.
    absl::StatusOr<std::vector<BundledUpdate>> parts = ParseBundle(bytes);
    if (parts.ok()) return *std::move(parts);
  }
  return {{bytes, CohortOf(received)}};
}

std::vector<BundledUpdate> CountedPartsOf(const ReceivedUpdate& received) {
  std::vector<BundledUpdate> parts = PartsOf(received);
  for (auto place = received.left_out.rbegin(); place != received.left_out.rend(); ++place) {
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(*place));
  }
  return parts;
}

bool HasChoice(const Update& update, int64_t choice) {
  const absl::StatusOr<std::vector<BundledUpdate>> parts = ParseBundle(update.bytes());
  if (!parts.ok()) return ChoiceOf(update.bytes()) == choice;
  return absl::c_all_of(*parts, [choice](const BundledUpdate& one) { return ChoiceOf(one.message) == choice; });
}

RoundInputs InputsOf(const EngineState& run) {
  const std::vector<Element> elements = ElementsOf(run.round);
  const ClientTask task = TaskFrom(*run.config, run.model.head().version);
  const bool by_samples = run.config->rounds.weighting == Weighting::kSamples || task == ClientTask::kFullGradient;
  const bool by_clients = !by_samples && WeighsCohorts(run, elements);
  const bool by_age = !by_samples && task != ClientTask::kGradientStep &&
                      absl::c_any_of(elements, [](const Element& one) { return one.staleness > 0; });
  RoundInputs inputs;
  for (const Element& one : elements) {
    inputs.messages.insert(inputs.messages.end(), one.count, one.update.message);
    if (!by_samples && !by_clients && !by_age) continue;
    const CohortFacts& cohort = one.update.cohort;
    const int64_t weight = by_samples ? cohort.samples : by_clients ? cohort.clients : 1;
    inputs.samples.insert(inputs.samples.end(), one.count, by_age ? weight * StaleShare(one.staleness) : weight);
    if (by_age) inputs.total += kFreshShare * weight * one.count;
  }
  return inputs;
}

}  // namespace terse
