// All settings of a run, for kSettings. Internal to trainer/messages.
#ifndef TERSE_TRAINER_RUN_CONFIG_FIELDS_H_
#define TERSE_TRAINER_RUN_CONFIG_FIELDS_H_

#include "core/run_config.h"
#include "trainer/message_fields.h"

namespace terse {

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
  TERSE_FIELDS(seconds, accuracy, loss, iterations, patience, patience_metric, min_delta);
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
}  // namespace terse

#endif  // TERSE_TRAINER_RUN_CONFIG_FIELDS_H_
