#include "simulation/simulation_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/file_system.h"
#include "core/run_config.h"
#include "core/status.h"
#include "proto/run_config_loader.h"
#include "storage/module_file.h"

namespace terse {
namespace {

absl::Status CheckClock(const v1::Rounds& rounds) {
  const auto refuse = [](absl::string_view key, absl::string_view remedy) {
    return absl::InvalidArgumentError(absl::StrCat(
        key, " lets the fastest clients make a round, and how fast a simulated client is says nothing; ", remedy));
  };
  if (rounds.over_selection() > 0) return refuse("rounds.over_selection", "set it to 0");
  if (rounds.mode() != "synchronous") return refuse("rounds.mode", "set it to 'synchronous'");
  return absl::OkStatus();
}

// Returns the bytes of the model's file, and names them in the run.
absl::StatusOr<std::string> ReadModelFile(const std::string& path, v1::Model* model) {
  const bool external = model->name() == kExternalModel;
  if (model->name() == kTorchScriptModel) {
    return absl::InvalidArgumentError("a TorchScript model is not simulated; train it with a trainer of your own");
  }
  if (external == !path.empty()) {
    if (!external) return std::string();
    TERSE_ASSIGN_OR_RETURN(std::string bytes, PosixFiles().Read(path, kMaxModuleBytes));
    model->set_hash(ModuleHash(bytes));
    return bytes;
  }
  return absl::InvalidArgumentError(
      external
          ? "the run trains a model that only the clients' own trainers know; give its safetensors file with --model"
          : absl::StrCat("the run trains model '", model->name(), "', which needs no --model"));
}

// The coordinator's clients are the relays, and all of the fleet's clients have a part of the data each.
absl::Status PutRelaysBetween(const RunChanges& changes, v1::RunConfig* config) {
  v1::Rounds& rounds = *config->mutable_rounds();
  if (changes.cohort > 0) {
    return absl::InvalidArgumentError(
        "a relay asks all of its clients in every round, so there is no cohort to draw; leave out --cohort or "
        "--relays");
  }
  if (rounds.clients() % changes.relays != 0) {
    return absl::InvalidArgumentError(absl::StrCat(rounds.clients(), " clients cannot be shared out evenly to ",
                                                   changes.relays, " relays; change --clients or --relays"));
  }
  if (config->data().partition() != "all") config->mutable_data()->set_shards(rounds.clients());
  rounds.set_clients(changes.relays);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SimulatedRun> LoadSimulationRun(const std::string& run_file, const RunChanges& changes,
                                               const std::string& model_path) {
  SimulatedRun simulated;
  v1::RunConfig& config = simulated.config;
  TERSE_ASSIGN_OR_RETURN(config, LoadRunConfig(run_file));
  absl::StatusOr<std::string> model_file = ReadModelFile(model_path, config.mutable_model());
  if (!model_file.ok()) return Annotate(model_file.status(), run_file);
  simulated.model_file = *std::move(model_file);
  v1::Rounds& rounds = *config.mutable_rounds();
  TERSE_RETURN_IF_ERROR(Annotate(CheckClock(rounds), run_file));
  if (changes.clients > 0) rounds.set_clients(changes.clients);
  if (changes.rounds > 0) rounds.set_count(changes.rounds);
  const int64_t clients = simulated.clients = rounds.clients();
  if (changes.cohort > clients) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cohort of ", changes.cohort, " is more than the fleet's ", clients, " clients"));
  }
  if (changes.cohort > 0) {
    // The cohort is rounded up from the fraction, which must not come out above it.
    rounds.set_fraction((static_cast<double>(changes.cohort) - 0.5) / static_cast<double>(clients));
    if (changes.cohort == clients) rounds.set_fraction(1);
    if (changes.cohort < clients && rounds.selection() == "all") rounds.set_selection("random");
  }
  if (changes.relays > 0) {
    TERSE_RETURN_IF_ERROR(PutRelaysBetween(changes, &config));
    simulated.relays = changes.relays;
    simulated.relay_mode = changes.relay_mode;
  }
  rounds.set_deadline_seconds(kSimulatedDeadlineSeconds);
  TERSE_RETURN_IF_ERROR(ValidateNewRun(config));
  return simulated;
}

}  // namespace terse
