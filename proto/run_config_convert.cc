#include "proto/run_config_convert.h"

#include <algorithm>

#include "core/aggregation_facts.h"
#include "core/status.h"
#include "proto/run_config_loader.h"
#include "proto/run_config_rules.h"

namespace terse {
namespace {

TrainSpec ToCore(const v1::Train& train) {
  const v1::Optimizer& optimizer = train.optimizer();
  TrainSpec spec;
  spec.local_steps = train.local_steps();
  spec.batch_size = train.batch_size();
  spec.optimizer.name = optimizer.name();
  spec.optimizer.learning_rate = optimizer.learning_rate();
  spec.optimizer.momentum = optimizer.momentum();
  spec.optimizer.beta1 = optimizer.beta1();
  spec.optimizer.beta2 = optimizer.beta2();
  spec.optimizer.epsilon = optimizer.epsilon();
  spec.optimizer.momentum_masking = optimizer.momentum_masking();
  spec.optimizer.nesterov = optimizer.nesterov();
  spec.optimizer.weight_decay = optimizer.weight_decay();
  spec.optimizer.l1 = optimizer.l1();
  spec.optimizer.clip_norm = optimizer.clip_norm();
  spec.schedule = {train.schedule().factor(),
                   {train.schedule().at().begin(), train.schedule().at().end()},
                   train.schedule().from(),
                   train.schedule().every()};
  spec.loss = train.loss();
  spec.proximal = train.proximal();
  spec.unroll = train.unroll();
  return spec;
}

ModelSpec ToCore(const v1::Model& model) {
  ModelSpec spec;
  spec.name = model.name();
  spec.classes = model.classes();
  spec.inputs = model.inputs();
  spec.dropout = model.dropout();
  spec.buffers = model.buffers();
  spec.hash = model.hash();
  return spec;
}

DataSpec ToCore(const v1::Data& data) {
  DataSpec spec;
  spec.name = data.name();
  spec.partition = data.partition();
  spec.train = data.train();
  spec.test = data.test();
  spec.columns.assign(data.columns().begin(), data.columns().end());
  spec.level = data.level();
  spec.vocabulary = data.vocabulary();
  spec.features = data.features();
  spec.normalize = data.normalize();
  spec.augment = data.augment();
  spec.alpha = data.alpha();
  spec.labels_each = data.labels_each();
  spec.exponent = data.exponent();
  spec.examples = data.examples();
  spec.shards = data.shards();
  return spec;
}

// Converts the settings that the two directions' codecs have in common.
template <typename Settings>
CodecSpec ToCodecSpec(const std::string& name, const Settings& settings) {
  CodecSpec spec;
  spec.name = name;
  spec.density = settings.density();
  spec.counts = settings.counts();
  spec.mean_precision = settings.mean_precision();
  spec.positions = settings.positions();
  spec.grouping = settings.grouping();
  spec.merge_below = settings.merge_below();
  spec.bits = settings.bits();
  spec.code = settings.code();
  spec.bucket = settings.bucket();
  spec.threshold = settings.threshold();
  spec.samples = settings.samples();
  spec.feedback = settings.feedback();
  spec.decay = settings.decay();
  return spec;
}

CodecSpec ToCore(const v1::Codec& codec) {
  CodecSpec spec = ToCodecSpec(codec.name(), codec);
  spec.sampling_step = codec.sampling_step();
  spec.momentum = codec.momentum();
  spec.clip = codec.clip();
  spec.warmup_rounds = codec.warmup_rounds();
  return spec;
}

// The rules admit the names that these functions know, so what is none of the first is the last.
Selection SelectionOf(const v1::Rounds& rounds) {
  if (rounds.selection() == "all") return Selection::kAll;
  if (rounds.selection() == "random") return Selection::kRandom;
  return rounds.selection() == "samples" ? Selection::kSamples : Selection::kReliability;
}

// Half of the cohort, so that an absent client holds nobody up, and enough for the rule.
int64_t QuorumOf(const v1::Rounds& rounds, const AggregationSpec& aggregation) {
  if (rounds.quorum() != 0) return rounds.quorum();
  return std::max((CohortSize(rounds) + 1) / 2, LeastUpdates(aggregation));
}

RoundPolicy ToCore(const v1::Rounds& rounds, const AggregationSpec& aggregation) {
  RoundPolicy policy;
  policy.count = rounds.count();
  policy.clients = rounds.clients();
  policy.selection = SelectionOf(rounds);
  policy.cohort = CohortSize(rounds);
  policy.invited = std::min(policy.clients, policy.cohort + CeilOf(rounds.over_selection(), policy.cohort));
  policy.quorum = QuorumOf(rounds, aggregation);
  policy.deadline_seconds = rounds.deadline_seconds();
  policy.grace_seconds = rounds.grace_seconds();
  policy.weighting = rounds.weighting() == "samples" ? Weighting::kSamples : Weighting::kUniform;
  policy.buffered = rounds.mode() == "buffered";
  policy.staleness = rounds.staleness();
  return policy;
}

ClientPolicy ToCore(const v1::Clients& clients) {
  return {{clients.allow().begin(), clients.allow().end()}, clients.set_aside_after(), clients.set_aside_seconds()};
}

DownstreamMode DownstreamOf(const v1::Codec& codec) {
  if (codec.downstream() == "forward") return DownstreamMode::kForward;
  if (codec.downstream() == "dense") return DownstreamMode::kDense;
  return codec.downstream() == "auto" ? DownstreamMode::kAuto : DownstreamMode::kCoded;
}

ServerOptimizerSpec ToCore(const v1::Server& server) {
  ServerOptimizerSpec spec;
  spec.name = server.optimizer();
  spec.learning_rate = server.learning_rate();
  spec.momentum = server.momentum();
  spec.nesterov = server.nesterov();
  spec.beta1 = server.beta1();
  spec.beta2 = server.beta2();
  spec.tau = server.tau();
  spec.epoch_length = server.epoch_length();
  spec.precision_loss = server.precision_loss();
  spec.bit_centering = server.bit_centering();
  return spec;
}

ControlSpec ToCore(const v1::Control& control) {
  ControlSpec spec;
  spec.name = control.name();
  spec.by = control.by();
  spec.at.assign(control.at().begin(), control.at().end());
  spec.patience = control.patience();
  spec.local_steps.assign(control.local_steps().begin(), control.local_steps().end());
  spec.density.assign(control.density().begin(), control.density().end());
  spec.bits.assign(control.bits().begin(), control.bits().end());
  spec.budget = control.budget();
  spec.price = control.price();
  return spec;
}

}  // namespace

RunLimits ToCore(const v1::Limits& limits) {
  RunLimits core;
  core.seconds = limits.seconds();
  core.accuracy = limits.accuracy();
  core.loss = limits.loss();
  core.iterations = limits.iterations();
  core.patience = limits.patience();
  core.patience_metric = limits.patience_metric() == "accuracy" ? PatienceMetric::kAccuracy
                         : limits.patience_metric() == "loss"   ? PatienceMetric::kLoss
                                                                : PatienceMetric::kAuto;
  core.min_delta = limits.min_delta();
  return core;
}

absl::StatusOr<RunConfig> ToCore(const v1::RunConfig& given) {
  const v1::RunConfig config = WithLaterDefaults(given);
  TERSE_RETURN_IF_ERROR(ValidateRunConfig(config));
  RunConfig run;
  run.name = config.name();
  run.seed = static_cast<uint64_t>(config.seed());
  run.durability = config.durability() == "relaxed" ? Durability::kRelaxed : Durability::kStrict;
  run.model = ToCore(config.model());
  run.data = ToCore(config.data());
  run.train = ToCore(config.train());
  run.codec = ToCore(config.codec());
  run.downstream = DownstreamOf(config.codec());
  if (run.downstream == DownstreamMode::kCoded) {
    run.downstream_codec = ToCodecSpec(config.codec().downstream(), config.downstream());
  }
  run.server = ToCore(config.server());
  run.control = ToCore(config.control());
  run.aggregation = AggregationOf(config);
  run.rounds = ToCore(config.rounds(), run.aggregation);
  run.clients = ToCore(config.clients());
  run.limits = ToCore(config.limits());
  run.evaluate_every = config.rounds().evaluate_every();
  run.checkpoint_every = config.checkpoints().every();
  run.checkpoint_keep = config.checkpoints().keep();
  run.ledger_keep_rounds = config.ledger().keep_rounds();
  run.events_keep = config.events().keep();
  run.policy = {config.policy().norm_bound(), config.policy().z_score(), config.policy().cosine(),
                config.policy().norm_ratio()};
  return run;
}

}  // namespace terse
