// Relaying, in the place of committing in a relay: hands the mean of the closed round's updates up, or the updates as
// they came, and commits the round once that is sealed in the relay's own update. The clients hear APPLIED after that,
// never before: what they hear is then in the relay's outbox or its residual, whatever becomes of the relay.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/bundle.h"
#include "coordinator/phases/phases.h"
#include "coordinator/round_inputs.h"
#include "coordinator/sessions.h"
#include "core/fault.h"
#include "core/status.h"

namespace terse {
namespace {

class Relaying : public Phase {
 public:
  PhaseName name() const override { return PhaseName::kCommitting; }

  Transition Enter(EngineState& run) override {
    if (!run.relay->order.has_value()) return Drop(run, "nobody above waits for the round any more");
    if (run.round.size() == 0) return GiveUp(run, "every update of the round was refused");
    CohortResult result = ResultOf(run);
    const absl::Status made = run.relay->setup.rounds.forwards ? Bundle(run, &result) : Average(run, &result);
    if (absl::IsInvalidArgument(made)) return GiveUp(run, std::string(made.message()));
    TERSE_RETURN_IF_ERROR(made);
    run.journal.Later([upstream = run.relay->setup.upstream, result = std::make_shared<CohortResult>(std::move(
                                                                 result))] { upstream->HandUp(std::move(*result)); });
    if (Mutated(Mutant::kRelaySettlesFirst)) return CommitCohort(run);
    return absl::nullopt;
  }

  Transition OnHandedUp(EngineState& run, const HandedUp& event) override {
    if (event.round != run.round.number()) return absl::nullopt;
    if (!event.sealed.ok()) return Drop(run, std::string(event.sealed.message()));
    TERSE_FAILPOINT("relay.result.sealed");
    return CommitCohort(run);
  }

 private:
  static Transition Drop(EngineState& run, const std::string& reason) {
    run.relay->order = absl::nullopt;
    TERSE_RETURN_IF_ERROR(Abort(run, reason));
    return PhaseName::kSelecting;
  }

  // INVALID_ARGUMENT for updates that cannot be averaged.
  static absl::Status Average(EngineState& run, CohortResult* result) {
    const RoundInputs inputs = InputsOf(run);
    TERSE_ASSIGN_OR_RETURN(ServerStep::Result step,
                           run.model.server().MakeStep(run.model.head().version, run.model.weights(), inputs.messages,
                                                       inputs.samples, inputs.total, run.round.plan().choice));
    result->delta = std::move(step.weights);
    return absl::OkStatus();
  }

  // INVALID_ARGUMENT for more updates than a bundle has. Those of a relay below are bundled anew, so that none is in
  // another one.
  static absl::Status Bundle(const EngineState& run, CohortResult* result) {
    std::vector<BundledUpdate> all;
    for (const auto& [client, received] : run.round.updates()) {
      for (const BundledUpdate& part : CountedPartsOf(received)) all.push_back(part);
    }
    absl::StatusOr<std::string> bundle = BuildBundle(all);
    if (!bundle.ok()) return absl::InvalidArgumentError(bundle.status().message());
    result->bundle = *std::move(bundle);
    return absl::OkStatus();
  }

  static CohortResult ResultOf(const EngineState& run) {
    CohortResult result;
    result.round = run.round.number();
    std::vector<absl::Span<const NamedMetric>> metrics;
    double loss = 0;
    for (const auto& [client, received] : run.round.updates()) {
      const CohortFacts cohort = CohortOf(CountedPartsOf(received));
      result.cohort.clients += cohort.clients;
      result.cohort.samples += cohort.samples;
      loss += received.update.loss * static_cast<double>(cohort.clients);
      metrics.emplace_back(received.update.metrics);
    }
    result.loss = loss / static_cast<double>(result.cohort.clients);
    for (const MetricMean& mean : MeanMetrics(metrics)) {
      if (result.metrics.size() == kMostMetrics) break;
      result.metrics.push_back({mean.kind, mean.name, mean.mean, mean.samples});
    }
    return result;
  }

  static Transition CommitCohort(EngineState& run) {
    BookWire(run);
    for (const auto& [client, received] : run.round.updates()) run.book().AddUp(client, 0, run.DenseBytesPerRound());
    Commit commit;
    commit.round = run.round.number();
    commit.base_version = run.model.head().version;
    commit.committed_us = run.Now();
    commit.ledger = run.book().Take(run.round.number());
    commit.history = MessagesForHistories(run);
    TERSE_FAILPOINT("relay.commit.before");
    TERSE_RETURN_IF_ERROR(run.store()->CommitRound(commit, /*open_next=*/false));
    TERSE_FAILPOINT("relay.commit.done");
    TERSE_RETURN_IF_ERROR(AddToHistories(run));
    const Fleet::Bulk bulk(&run.fleet);
    TellApplied(run);
    run.SettleRound(/*keep_updates=*/false);
    run.course.unusable_rounds = 0;
    run.relay->order = absl::nullopt;
    return PhaseName::kSelecting;
  }
};

}  // namespace

std::unique_ptr<Phase> MakeRelaying() { return std::make_unique<Relaying>(); }

}  // namespace terse
