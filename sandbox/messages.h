// The bodies of the frames (trainer/frames.h) between a client or coordinator and its sandboxed process, which is this
// program again:
//   kOpen        LearningRequest; kDone is Made. A coordinator's Shard says nothing, and Made::samples is then 0
//   kStart       nothing; kDone is StartAnswer, and the weights are in SharedVectors::result
//   kTrain       LocalPlan; the vectors are in SharedVectors, kDone is TrainResult
//   kGradient    GradientRequest; as kTrain
//   kMask        positions, 8 bytes each; kDone is empty
//   kSave        nothing; kDone is the state
//   kRestore     the state; kDone is empty
//   kProgress    nothing; answered by kGoOn, StepAnswer
//   kEvaluate    nothing; the weights are in SharedVectors, kDone is EvaluateAnswer
//   kExport      nothing; the weights are in SharedVectors, kDone is a TorchScript file
//   kVocabulary  nothing; kDone is VocabularyAnswer
//   kFailed      Failure, in place of kDone
// The first kDone, which nobody asked for, is Confinement.
#ifndef TERSE_SANDBOX_MESSAGES_H_
#define TERSE_SANDBOX_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/layout.h"
#include "core/run_config.h"
#include "core/trainer.h"
#include "sandbox/message_bytes.h"
#include "trainer/messages.h"

namespace terse {

struct LearningRequest {
  RunConfig config;
  Shard shard;
  std::string module;
};
struct Made {
  std::vector<Layout::Entry> layout;
  int64_t samples = 0;
};
struct StartAnswer {
  bool has_weights = false;
};
struct GradientRequest {
  bool has_snapshot = false;
};
struct StepAnswer {
  bool go_on = false;
};
struct Failure {
  int32_t code = 0;  // absl::StatusCode
  std::string message;
  std::string details = {};  // DetailsOf the status
};
struct EvaluateAnswer {
  // One, or none where there is none.
  std::vector<double> accuracy = {};
  std::vector<double> top5 = {};
  std::vector<double> perplexity = {};
  double loss = 0;
};

struct VocabularyAnswer {
  std::vector<std::string> symbols;
};

template <typename Io>
void Fields(Io& io, CodecSpec& whole) {
  TERSE_FIELDS(name, density, mean_precision, positions, grouping, merge_below, bits, code, bucket, threshold, samples,
               sampling_step, feedback, decay, momentum, clip, warmup_rounds, counts);
}
template <typename Io>
void Fields(Io& io, ModelSpec& whole) {
  TERSE_FIELDS(name, classes, inputs, dropout, buffers, hash);
}
template <typename Io>
void Fields(Io& io, DataSpec& whole) {
  TERSE_FIELDS(name, partition, train, test, columns, level, vocabulary, features, normalize, augment, alpha,
               labels_each, exponent, examples, shards);
}
template <typename Io>
void Fields(Io& io, OptimizerSpec& whole) {
  TERSE_FIELDS(name, learning_rate, momentum, beta1, beta2, epsilon, masking, nesterov, weight_decay, l1, clip_norm);
}
template <typename Io>
void Fields(Io& io, LearningRateSchedule& whole) {
  TERSE_FIELDS(factor, at, from, every);
}
template <typename Io>
void Fields(Io& io, TrainSpec& whole) {
  TERSE_FIELDS(local_steps, batch_size, optimizer, schedule, loss, proximal, unroll);
}
template <typename Io>
void Fields(Io& io, RoundPolicy& whole) {
  TERSE_FIELDS(count, clients, quorum, deadline, selection, cohort, invited, grace, weighting, buffered, staleness);
}
template <typename Io>
void Fields(Io& io, ClientPolicy& whole) {
  TERSE_FIELDS(allow, set_aside_after, set_aside_seconds);
}
template <typename Io>
void Fields(Io& io, RunLimits& whole) {
  TERSE_FIELDS(seconds, accuracy, loss, iterations);
}
template <typename Io>
void Fields(Io& io, ServerOptimizerSpec& whole) {
  TERSE_FIELDS(name, learning_rate, momentum, nesterov, beta1, beta2, tau, epoch_length, precision_loss, centering);
}
template <typename Io>
void Fields(Io& io, ControlSpec& whole) {
  TERSE_FIELDS(name, by, at, patience, local_steps, density, bits, budget, price);
}
template <typename Io>
void Fields(Io& io, AggregationSpec& whole) {
  TERSE_FIELDS(rule, absent, trim, byzantine, keep);
}
template <typename Io>
void Fields(Io& io, UpdatePolicy& whole) {
  TERSE_FIELDS(norm_bound, z_score, cosine, norm_ratio);
}
template <typename Io>
void Fields(Io& io, RunConfig& whole) {
  TERSE_FIELDS(name, seed, durability, model, data, train, codec, downstream, downstream_codec, server, control, rounds,
               clients, limits, evaluate_every, checkpoint_every, checkpoint_keep, aggregation, policy,
               ledger_keep_rounds, events_keep);
}
template <typename Io>
void Fields(Io& io, LearningRequest& whole) {
  TERSE_FIELDS(config, shard, module);
}
template <typename Io>
void Fields(Io& io, Layout::Entry& whole) {
  TERSE_FIELDS(name, shape, kind);
}
template <typename Io>
void Fields(Io& io, Made& whole) {
  TERSE_FIELDS(layout, samples);
}
template <typename Io>
void Fields(Io& io, NamedMetric& whole) {
  TERSE_FIELDS(kind, name, value, samples);
}
template <typename Io>
void Fields(Io& io, TrainResult& whole) {
  TERSE_FIELDS(mean_loss, samples, metrics);
}
template <typename Io>
void Fields(Io& io, StartAnswer& whole) {
  TERSE_FIELDS(has_weights);
}
template <typename Io>
void Fields(Io& io, GradientRequest& whole) {
  TERSE_FIELDS(has_snapshot);
}
template <typename Io>
void Fields(Io& io, StepAnswer& whole) {
  TERSE_FIELDS(go_on);
}
template <typename Io>
void Fields(Io& io, Failure& whole) {
  TERSE_FIELDS(code, message, details);
}
template <typename Io>
void Fields(Io& io, VocabularyAnswer& whole) {
  TERSE_FIELDS(symbols);
}
template <typename Io>
void Fields(Io& io, EvaluateAnswer& whole) {
  TERSE_FIELDS(accuracy, top5, perplexity, loss);
}

}  // namespace terse

#endif  // TERSE_SANDBOX_MESSAGES_H_
