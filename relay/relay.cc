#include "relay/relay.h"

#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/observations.h"
#include "client/rpc/daemon.h"
#include "core/status.h"
#include "relay/cohort_trainer.h"
#include "relay/relay_link.h"
#include "storage/client_state.h"
#include "storage/run_stores.h"

namespace terse {
namespace {

// A relay makes no model of its own: all runs that it serves are made from above.
absl::StatusOr<std::unique_ptr<RunLearning>> NoLearning(const RunConfig& config, const std::string&,
                                                        const std::string&) {
  return absl::FailedPreconditionError(
      absl::StrCat("run '", config.name, "' is no relay's; serve it with terse-coordinator"));
}

// The status of a state that is in a database, whose damage a client's remedy does not mend.
absl::Status InStore(const absl::Status& status, const std::string& place) {
  const absl::Status placed = Annotate(status, place);
  if (!absl::IsDataLoss(status)) return placed;
  return absl::DataLossError(absl::StrCat(placed.message(),
                                          "; for a relay with --store do that by ending its processes "
                                          "and `DROP SCHEMA \"terse-relay\" CASCADE` in its database"));
}

}  // namespace

absl::Status Relay::ReadState(RunStores& runs) {
  TERSE_ASSIGN_OR_RETURN(state_, runs.OpenUpstream());
  const absl::StatusOr<std::unique_ptr<ClientState>> state = ClientState::Open(state_.directory, *state_.files);
  if (!state.ok()) return options_.below.store.empty() ? state.status() : InStore(state.status(), runs.place());
  TERSE_ASSIGN_OR_RETURN(const StoredState stored, (*state)->Read());
  TERSE_ASSIGN_OR_RETURN(const ObservedState observed, ReadObservations(stored.trainer_state));
  if (observed.trainer_state.empty()) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const CohortState cohort, ParseCohortState(observed.trainer_state));
  desk_.SetSealed(cohort.sealed);
  return absl::OkStatus();
}

void Relay::Begin(RunRegistry* runs, CoordinatorEnding* ending) {
  desk_.Begin(runs, [ending](const absl::Status& status) { ending->Decide(status); });
  thread_ = std::thread([this, ending] {
    const absl::Status status = Serve();
    if (!status.ok() && !absl::IsCancelled(status)) ending->Decide(status);
  });
}

absl::Status Relay::Serve() {
  DaemonOptions above = options_.above;
  above.state_directory = state_.directory;
  above.files = state_.files.get();
  above.through = [this](CoordinatorLink* connection) { return std::make_unique<RelayLink>(connection, &desk_); };
  // The first time anyway: it hears what became of its update.
  above.may_connect = [this, first = true]() mutable {
    if (!(first || desk_.HasClients()) || !HasState()) return false;
    first = false;
    return true;
  };
  const auto make_trainer = [this](const RunConfig&, const Shard&,
                                   absl::string_view module) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
    desk_.TakeModule(std::string(module));
    return std::make_unique<CohortTrainer>(&desk_, *desk_.welcome().layout, options_.rounds.forwards);
  };
  return ServeCoordinator(above, make_trainer, &stop_);
}

bool Relay::HasState() const { return state_.files->List(state_.directory).ok(); }

void Relay::End() {
  stop_.store(true);
  if (thread_.joinable()) thread_.join();
}

int RunRelay(RelayOptions options) {
  const absl::Status who = CheckWhoIAm(&options.above);
  Relay relay(options);
  CoordinatorOptions below = options.below;
  below.relay = &relay;
  return RunCoordinator(below, NoLearning, [&who] { return who; });
}

}  // namespace terse
