#include "proto/run_config_convert.h"

#include "core/status.h"
#include "proto/run_config_loader.h"

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
  return spec;
}

CodecSpec ToCore(const v1::Codec& codec) {
  CodecSpec spec;
  spec.name = codec.name();
  spec.density = codec.density();
  spec.mean_precision = codec.mean_precision();
  spec.positions = codec.positions();
  spec.grouping = codec.grouping();
  spec.merge_below = codec.merge_below();
  spec.bits = codec.bits();
  spec.code = codec.code();
  spec.bucket = codec.bucket();
  spec.threshold = codec.threshold();
  spec.samples = codec.samples();
  spec.sampling_step = codec.sampling_step();
  spec.feedback = codec.feedback();
  spec.decay = codec.decay();
  spec.momentum = codec.momentum();
  spec.clip = codec.clip();
  spec.warmup_rounds = codec.warmup_rounds();
  return spec;
}

RoundPolicy ToCore(const v1::Rounds& rounds) {
  RoundPolicy policy;
  policy.count = rounds.count();
  policy.clients = rounds.clients();
  policy.quorum = rounds.quorum() == 0 ? rounds.clients() : rounds.quorum();
  policy.deadline_seconds = rounds.deadline_seconds();
  return policy;
}

// The rules admit three names, so what is neither of the first two is the third.
DownstreamMode DownstreamOf(const v1::Codec& codec) {
  if (codec.downstream() == "forward") return DownstreamMode::kForward;
  return codec.downstream() == "dense" ? DownstreamMode::kDense : DownstreamMode::kAuto;
}

}  // namespace

absl::StatusOr<RunConfig> ToCore(const v1::RunConfig& config) {
  TERSE_RETURN_IF_ERROR(ValidateRunConfig(config));
  RunConfig run;
  run.name = config.name();
  run.seed = static_cast<uint64_t>(config.seed());
  run.durability = config.durability() == "relaxed" ? Durability::kRelaxed : Durability::kStrict;
  run.model.name = config.model().name();
  run.data.name = config.data().name();
  run.data.partition = config.data().partition();
  run.train = ToCore(config.train());
  run.codec = ToCore(config.codec());
  run.downstream = DownstreamOf(config.codec());
  run.rounds = ToCore(config.rounds());
  run.evaluate_every = config.rounds().evaluate_every();
  run.checkpoint_every = config.checkpoints().every();
  run.checkpoint_keep = config.checkpoints().keep();
  return run;
}

}  // namespace terse
