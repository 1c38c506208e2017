// A host prepares its run before it serves it: it chooses the configuration, from the run's file and from what is
// stored, and makes everything that follows from it.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/run_codecs.h"
#include "coordinator/rpc/run_host.h"
#include "core/file_system.h"
#include "core/status.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"
#include "storage/event_kinds.h"
#include "storage/module_file.h"

namespace terse {
namespace {

// The stored run's configuration, or the run file's once it is known to be the same or there is none.
absl::StatusOr<v1::RunConfig> ChooseConfig(const RunPlan& plan, const absl::optional<RunRecord>& stored) {
  if (!stored.has_value()) {
    if (plan.wanted.has_value()) return *plan.wanted;
    return absl::InvalidArgumentError(
        absl::StrCat(plan.directory, " holds no run yet; give its file with --run-file, or remove the directory"));
  }
  v1::RunConfig kept;
  if (!kept.ParseFromString(stored->config)) {
    return absl::DataLossError(absl::StrCat(plan.directory, " holds a run whose configuration cannot be read"));
  }
  kept = WithLaterDefaults(std::move(kept));
  // A run that was restored under another name goes by the name of its directory.
  kept.set_name(plan.name);
  if (plan.wanted.has_value() && plan.wanted->SerializeAsString() != kept.SerializeAsString()) {
    return absl::FailedPreconditionError(absl::StrCat(plan.directory, " holds run '", kept.name(),
                                                      "' with other settings than ", plan.run_file,
                                                      "; resume it without --run-file, or choose another --state"));
  }
  return kept;
}

absl::Status CreateRun(const RunConfig& config, const v1::RunConfig& wire, const RunLearning& learning,
                       const absl::optional<RelayStart>& relay, Clock* clock, RunStore* store) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<float> weights, learning.InitialWeights());
  RunRecord record;
  record.name = config.name;
  record.lineage = Id128::Random();
  record.config = wire.SerializeAsString();
  record.parameters = weights.size();
  record.created_us = clock->NowMicros();
  if (relay.has_value()) {
    record.relay = relay->facts;
    record.first_version = relay->version;
  }
  TERSE_RETURN_IF_ERROR(store->CreateRun(record, weights));
  return store->AddEvent({record.created_us, event::kRunCreated, 0, -1, config.name});
}

// A buffered run answers about updates that are so many versions older than the round that chose them.
Retention RetentionOf(const RunConfig& config) {
  const int64_t rounds = config.ledger_keep_rounds;
  return {rounds == 0 ? 0 : std::max(rounds, config.rounds.staleness), config.events_keep};
}

}  // namespace

absl::Status RunHost::Prepare(RunStore* store) {
  TERSE_ASSIGN_OR_RETURN(absl::optional<RunRecord> stored, store->Run());
  TERSE_ASSIGN_OR_RETURN(wire_config_, ChooseConfig(options_.plan, stored));
  TERSE_ASSIGN_OR_RETURN(config_, ToCore(wire_config_));
  TERSE_RETURN_IF_ERROR(PrepareRelay(stored));
  if (learning_ == nullptr) {
    TERSE_ASSIGN_OR_RETURN(const std::string module, ReadModule(PosixFiles(), directory(), config_.model));
    RunConfig learned = config_;
    // Whether an evaluation can reach a limit is asked when a run is made: earlier releases did not ask.
    if (stored.has_value()) learned.limits = RunLimits();
    TERSE_ASSIGN_OR_RETURN(learning_, options_.make_learning(learned, module));
  }
  TERSE_ASSIGN_OR_RETURN(codec_, MakeUpdateCodec(config_, learning_->layout()));
  if (SharesHistory(config_)) {
    TERSE_RETURN_IF_ERROR(UpdateHistories::Check(*codec_));
    histories_ = std::make_unique<UpdateHistories>(codec_.get());
  }
  spool_ = std::make_unique<UpdateSpool>(directory());
  if (options_.trace_rounds > 0) traces_ = std::make_unique<RoundTraces>(options_.trace_rounds, options_.clock);
  TERSE_ASSIGN_OR_RETURN(downstream_codec_, MakeDownstreamCodec(config_, learning_->layout()));
  if (!stored.has_value()) {
    TERSE_RETURN_IF_ERROR(CreateRun(config_, wire_config_, *learning_, options_.plan.relay, options_.clock, store));
    is_new_ = true;
    TERSE_ASSIGN_OR_RETURN(stored, store->Run());
  }
  TERSE_RETURN_IF_ERROR(store->SetRetention(RetentionOf(config_)));
  lineage_ = stored->lineage;
  absl::MutexLock lock(&mutex_);
  last_record_ = *std::move(stored);
  return absl::OkStatus();
}

absl::Status RunHost::PrepareRelay(const absl::optional<RunRecord>& stored) {
  const std::string bytes = stored.has_value()                ? stored->relay
                            : options_.plan.relay.has_value() ? options_.plan.relay->facts
                                                              : std::string();
  if (bytes.empty() != (options_.relay.upstream == nullptr)) {
    return absl::FailedPreconditionError(
        bytes.empty() ? absl::StrCat(directory(), " holds a run of a coordinator; serve it with terse-coordinator")
                      : absl::StrCat(directory(), " holds a run of a relay; serve it with terse-relay"));
  }
  if (bytes.empty()) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(RelayFacts facts, ParseRelayFacts(bytes));
  config_ = RelayConfig(std::move(config_), options_.relay.rounds);
  relay_ = RelaySetup{options_.relay.upstream, facts.family, facts.start_hash, facts.shards, options_.relay.rounds};
  learning_ = std::make_shared<RelayLearning>(std::move(facts.layout),
                                              stored.has_value() ? std::vector<float>() : options_.plan.relay->weights);
  return absl::OkStatus();
}

}  // namespace terse
