#include "proto/session_wire.h"

#include <algorithm>

namespace terse {
namespace {

v1::Verdict::Outcome ToWire(Outcome outcome) {
  switch (outcome) {
    case Outcome::kApplied:
      return v1::Verdict::OUTCOME_APPLIED;
    case Outcome::kNotApplied:
      return v1::Verdict::OUTCOME_NOT_APPLIED;
    case Outcome::kPending:
      return v1::Verdict::OUTCOME_PENDING;
    case Outcome::kReset:
      return v1::Verdict::OUTCOME_RESET;
  }
  return v1::Verdict::OUTCOME_UNSPECIFIED;
}

// An optional id: the empty string for zero, so that it costs nothing on the wire.
std::string IdBytes(Id128 id) { return id.IsZero() ? std::string() : id.ToBytes(); }

void FillVerdict(const Verdict& verdict, v1::Verdict* out) {
  out->set_outcome(ToWire(verdict.outcome));
  out->set_update_id(IdBytes(verdict.update_id));
  if (verdict.outcome == Outcome::kReset) out->set_last_applied(IdBytes(verdict.last_applied));
  out->set_reason(verdict.reason);
}

void Fill(const Welcome& welcome, const v1::RunConfig& config, v1::Welcome* out) {
  out->set_lineage(welcome.lineage.ToBytes());
  *out->mutable_config() = config;
  out->set_client_index(welcome.client_index);
  if (welcome.verdict.has_value()) FillVerdict(*welcome.verdict, out->mutable_verdict());
  out->set_head_version(welcome.head_version);
  if (!welcome.start_hash.IsZero()) out->set_start_hash(welcome.start_hash.ToBytes());
  if (welcome.family != welcome.lineage) out->set_family(IdBytes(welcome.family));
  if (welcome.shards.has_value()) {
    out->mutable_shards()->set_first(welcome.shards->first);
    out->mutable_shards()->set_count(welcome.shards->count);
  }
  if (welcome.layout != nullptr) *out->mutable_tensors() = TensorsToWire(*welcome.layout);
}

std::vector<v1::ServerMessage> DownstreamToWire(const Downstream& downstream) {
  std::vector<v1::ServerMessage> out;
  for (DownstreamChunks chunks(downstream); chunks.left() > 0;) out.push_back(chunks.Next(kChunkBytes));
  return out;
}

void PutBelow(const BelowFacts& below, v1::Below* out) {
  out->set_clients(below.clients);
  out->set_payload_bytes_up(below.payload_bytes_up);
  out->set_wire_bytes_up(below.wire_bytes_up);
  out->set_payload_bytes_down(below.payload_bytes_down);
  out->set_wire_bytes_down(below.wire_bytes_down);
}

std::vector<v1::ClientMessage> UpdateToWire(const Update& update) {
  std::vector<v1::ClientMessage> chunks;
  for (size_t at = 0; at < update.message.size(); at += kChunkBytes) {
    chunks.emplace_back().mutable_update()->set_data(update.message.substr(at, kChunkBytes));
  }
  v1::UpdateHeader* header = chunks.front().mutable_update()->mutable_header();
  header->set_round(update.round);
  header->set_update_id(update.update_id.ToBytes());
  header->set_size(update.message.size());
  header->set_train_us(update.train_us);
  header->set_loss(update.loss);
  header->set_packed(update.packed);
  if (update.norm_code.has_value()) header->set_norm_code(*update.norm_code);
  for (const NamedMetric& metric : update.metrics) {
    v1::Metric* const wire = header->add_metrics();
    wire->set_kind(static_cast<v1::Metric::Kind>(metric.kind));
    wire->set_name(metric.name);
    wire->set_value(metric.value);
    wire->set_samples(metric.samples);
  }
  header->set_cohort_clients(update.cohort.clients);
  header->set_cohort_samples(update.cohort.samples);
  if (update.below.has_value()) PutBelow(*update.below, header->mutable_below());
  return chunks;
}

}  // namespace

google::protobuf::RepeatedPtrField<v1::Tensor> TensorsToWire(const Layout& layout) {
  google::protobuf::RepeatedPtrField<v1::Tensor> out;
  for (const TensorSpec& tensor : layout.tensors()) {
    v1::Tensor* const wire = out.Add();
    wire->set_name(tensor.name);
    for (const int64_t dimension : tensor.shape) wire->add_shape(dimension);
    wire->set_buffer(tensor.kind == TensorKind::kBuffer);
  }
  return out;
}

v1::ServerMessage DownstreamChunks::Next(int64_t most) {
  const int64_t bytes = std::min(left(), most);
  v1::ServerMessage out;
  v1::DownstreamChunk* const chunk = out.mutable_downstream();
  if (at_ == 0) {
    v1::DownstreamHeader* const header = chunk->mutable_header();
    header->set_version(downstream_.version);
    header->set_model_hash(downstream_.model_hash.ToBytes());
    header->set_size(downstream_.message->size());
  }
  chunk->set_data(downstream_.message->data() + at_, static_cast<size_t>(bytes));
  at_ += bytes;
  return out;
}

std::vector<v1::ServerMessage> ToWire(const FromServer& message, const v1::RunConfig& config) {
  if (const auto* downstream = std::get_if<Downstream>(&message)) return DownstreamToWire(*downstream);
  std::vector<v1::ServerMessage> out(1);
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    Fill(*welcome, config, out[0].mutable_welcome());
  } else if (const auto* resync = std::get_if<Resync>(&message)) {
    out[0].mutable_resync()->set_checkpoint_version(resync->checkpoint_version);
    out[0].mutable_resync()->set_reason(resync->reason);
  } else if (const auto* assignment = std::get_if<Assignment>(&message)) {
    out[0].mutable_assignment()->set_round(assignment->round);
    out[0].mutable_assignment()->set_base_version(assignment->base_version);
    out[0].mutable_assignment()->set_local_steps(assignment->local_steps);
    out[0].mutable_assignment()->set_choice(static_cast<uint32_t>(assignment->choice));
    if (assignment->first_iteration.has_value()) {
      out[0].mutable_assignment()->set_first_iteration(*assignment->first_iteration);
    }
    out[0].mutable_assignment()->set_packed(assignment->packed);
  } else if (const auto* receipt = std::get_if<Receipt>(&message)) {
    out[0].mutable_receipt()->set_update_id(receipt->update_id.ToBytes());
  } else if (const auto* verdict = std::get_if<Verdict>(&message)) {
    FillVerdict(*verdict, out[0].mutable_verdict());
  } else if (const auto* refusal = std::get_if<Refusal>(&message)) {
    out[0].mutable_refusal()->set_reason(refusal->reason);
    out[0].mutable_refusal()->set_retry(refusal->retry);
    out[0].mutable_refusal()->set_lineage(IdBytes(refusal->lineage));
  } else if (const auto* finished = std::get_if<Finished>(&message)) {
    out[0].mutable_finished()->set_reason(finished->reason);
  } else {
    out[0].mutable_begin_history();
  }
  return out;
}

std::vector<v1::ClientMessage> ToWire(const FromClient& message) {
  if (const auto* update = std::get_if<Update>(&message)) return UpdateToWire(*update);
  std::vector<v1::ClientMessage> out(1);
  if (const auto* check_in = std::get_if<CheckIn>(&message)) {
    v1::CheckIn* wire = out[0].mutable_check_in();
    wire->set_protocol_version(check_in->protocol_version);
    wire->set_name(check_in->name);
    wire->set_lineage(IdBytes(check_in->lineage));
    wire->set_prev_applied(IdBytes(check_in->prev_applied));
    wire->set_pending_update_id(IdBytes(check_in->pending_update_id));
    wire->set_pending_round(check_in->pending_round);
    wire->set_residual_lost(check_in->residual_lost);
    wire->set_run(check_in->run);
    wire->set_process(IdBytes(check_in->process));
    wire->set_connection(check_in->connection);
    if (check_in->family != check_in->lineage) wire->set_family(IdBytes(check_in->family));
    wire->set_relay(check_in->relay);
  } else if (const auto* ready = std::get_if<Ready>(&message)) {
    if (ready->version.has_value()) out[0].mutable_ready()->set_version(*ready->version);
    out[0].mutable_ready()->set_model_hash(IdBytes(ready->model_hash));
    out[0].mutable_ready()->set_layout_hash(IdBytes(ready->layout_hash));
    out[0].mutable_ready()->set_samples(ready->samples);
    out[0].mutable_ready()->set_history_hash(IdBytes(ready->history_hash));
    out[0].mutable_ready()->set_device(ready->device);
  } else if (const auto* progress = std::get_if<Progress>(&message)) {
    out[0].mutable_progress()->set_round(progress->round);
    out[0].mutable_progress()->set_steps_done(progress->steps_done);
  } else {
    out[0].mutable_leaving()->set_reason(std::get<Leaving>(message).reason);
  }
  return out;
}

}  // namespace terse
