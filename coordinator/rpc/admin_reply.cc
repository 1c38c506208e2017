#include "coordinator/rpc/admin_reply.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "absl/time/time.h"
#include "coordinator/rpc/session_lines.h"
#include "core/compression_rate.h"
#include "core/version.h"

namespace terse {

void Fill(const RoundRecord& round, v1::Round* out) {
  out->set_id(round.id);
  out->set_state(std::string(RoundStateName(round.state)));
  out->set_base_version(round.base_version);
  out->set_opened_us(round.opened_us);
  if (round.closed_us != 0) {
    out->set_closed_us(round.closed_us);
    out->set_updates(round.updates);
    out->set_train_us_max(round.train_us_max);
    if (std::isfinite(round.train_loss)) out->set_train_loss(round.train_loss);
  }
  if (round.committed_us != 0) out->set_committed_us(round.committed_us);
  if (round.accuracy.has_value()) out->set_accuracy(*round.accuracy);
  if (round.top5.has_value()) out->set_top5(*round.top5);
  if (round.perplexity.has_value()) out->set_perplexity(*round.perplexity);
  if (round.test_loss.has_value()) out->set_test_loss(*round.test_loss);
  if (round.plan.has_value()) {
    out->set_local_steps(round.plan->local_steps);
    out->set_choice(static_cast<uint32_t>(round.plan->choice));
    out->set_why(round.plan->why);
  }
  out->set_dense_bytes_up(round.dense_bytes_up);
  out->set_payload_bytes_up(round.payload_bytes_up);
  out->set_wire_bytes_up(round.wire_bytes_up);
  out->set_dense_bytes_down(round.dense_bytes_down);
  out->set_payload_bytes_down(round.payload_bytes_down);
  out->set_wire_bytes_down(round.wire_bytes_down);
  const auto up = CompressionRate(round.dense_bytes_up, round.wire_bytes_up);
  if (up.has_value()) out->set_compression_up_wire(*up);
  const auto both =
      CompressionRate(round.dense_bytes_up + round.dense_bytes_down, round.wire_bytes_up + round.wire_bytes_down);
  if (both.has_value()) out->set_compression_both_wire(*both);
  for (const MetricMean& mean : round.metrics) {
    v1::MetricMean* const row = out->add_metrics();
    row->set_kind(std::string(MetricKindName(mean.kind)));
    row->set_name(mean.name);
    row->set_mean(mean.mean);
    row->set_clients(mean.clients);
    row->set_samples(mean.samples);
  }
}

void AddTo(const ClientMetrics& of_client, v1::MetricsReply* out) {
  for (const NamedMetric& metric : of_client.metrics) {
    v1::ClientMetric* const row = out->add_metrics();
    row->set_round(of_client.round);
    row->set_client(of_client.client);
    row->set_client_name(of_client.client_name);
    row->set_kind(std::string(MetricKindName(metric.kind)));
    row->set_name(metric.name);
    row->set_value(metric.value);
    row->set_samples(metric.samples);
  }
}

void Fill(const ClientRecord& client, v1::Client* out) {
  out->set_index(client.id);
  out->set_name(client.name);
  out->set_state("away");
  out->set_last_applied(client.last_applied.IsZero() ? "" : client.last_applied.ToBytes());
  out->set_first_seen_us(client.first_seen_us);
  out->set_last_seen_us(client.last_seen_us);
  out->set_updates_applied(client.updates_applied);
  out->set_updates_not_applied(client.updates_not_applied);
  out->set_resets(client.resets);
  out->set_samples(client.samples);
  out->set_reliability(client.reliability);
  out->set_failures(client.failures);
  out->set_set_aside_until_us(client.set_aside_until_us);
  out->set_set_aside_reason(client.set_aside_reason);
}

void Fill(const LedgerEntry& entry, v1::LedgerRow* out) {
  out->set_round(entry.round);
  out->set_client(entry.client);
  out->set_direction(entry.direction == Direction::kUp ? "up" : "down");
  out->set_dense_bytes(entry.dense_bytes);
  out->set_payload_bytes(entry.payload_bytes);
  out->set_wire_bytes(entry.wire_bytes);
  out->set_client_name(entry.client_name);
}

void Fill(const EventRecord& event, v1::Event* out) {
  out->set_time_us(event.time_us);
  out->set_kind(event.kind);
  out->set_round(event.round);
  out->set_client(event.client);
  out->set_detail(event.detail);
  out->set_id(event.id);
  out->set_client_name(event.client_name);
}

void Fill(const RunTotals& totals, v1::Run* out) {
  if (totals.accuracy.has_value()) out->set_accuracy(*totals.accuracy);
  if (totals.test_loss.has_value()) out->set_test_loss(*totals.test_loss);
  if (totals.best_accuracy.has_value()) out->set_best_accuracy(*totals.best_accuracy);
  if (totals.best_test_loss.has_value()) out->set_best_test_loss(*totals.best_test_loss);
  out->set_dense_bytes_up(totals.dense_bytes_up);
  out->set_payload_bytes_up(totals.payload_bytes_up);
  out->set_wire_bytes_up(totals.wire_bytes_up);
  out->set_dense_bytes_down(totals.dense_bytes_down);
  out->set_payload_bytes_down(totals.payload_bytes_down);
  out->set_wire_bytes_down(totals.wire_bytes_down);
  if (totals.first_opened_us != 0) out->set_first_opened_us(totals.first_opened_us);
  if (totals.last_committed_us != 0) out->set_last_committed_us(totals.last_committed_us);
}

void Fill(const BelowFacts& below, v1::TreeBelow* out) {
  out->set_clients(below.clients);
  out->set_payload_bytes_up(below.payload_bytes_up);
  out->set_wire_bytes_up(below.wire_bytes_up);
  out->set_payload_bytes_down(below.payload_bytes_down);
  out->set_wire_bytes_down(below.wire_bytes_down);
}

void AddSession(const SessionView& session, v1::Client* out) {
  out->set_connected(true);
  out->set_state(session.state);
  out->set_version(std::max<int64_t>(0, session.version));
  out->set_steps_done(session.steps_done);
  if (!session.device.empty()) out->set_device(session.device);
  if (session.residual_norm.has_value()) out->set_residual_norm(*session.residual_norm);
}

void AddBytes(const LedgerEntry& entry, v1::Client* out) {
  if (entry.direction == Direction::kUp) {
    out->set_payload_bytes_up(out->payload_bytes_up() + entry.payload_bytes);
    out->set_wire_bytes_up(out->wire_bytes_up() + entry.wire_bytes);
  } else {
    out->set_payload_bytes_down(out->payload_bytes_down() + entry.payload_bytes);
    out->set_wire_bytes_down(out->wire_bytes_down() + entry.wire_bytes);
  }
}

void Fill(const ClientTrace& trace, v1::ClientTrace* out) {
  out->set_client_name(trace.client);
  if (trace.assigned_us > 0) out->set_assigned_us(trace.assigned_us);
  if (trace.upload_began_us > 0) out->set_upload_began_us(trace.upload_began_us);
  if (trace.received_us > 0) {
    out->set_received_us(trace.received_us);
    out->set_train_us(trace.train_us);
    out->set_payload_bytes(static_cast<uint64_t>(trace.payload_bytes));
  }
  if (trace.verdict_us == 0) return;
  out->set_verdict_us(trace.verdict_us);
  out->set_outcome(std::string(OutcomeName(trace.outcome)));
}

void Fill(const ProcessFacts& process, v1::Coordinator* out) {
  out->set_program_version(kVersion);
  out->set_now_us(process.clock->NowMicros());
  out->set_state_directory(process.state_directory);
  std::error_code error;
  const std::filesystem::space_info disk = std::filesystem::space(process.state_directory, error);
  if (!error) {
    out->set_disk_free_bytes(disk.available);
    out->set_disk_bytes(disk.capacity);
  }
  if (process.tls == nullptr) return;
  out->set_certificate_until_us(absl::ToUnixMicros(process.tls->Files().certificate.not_after));
  out->set_revocations_us(absl::ToUnixMicros(process.tls->RevocationsIssued()));
}

std::string PhaseOf(const RunHost& run, const RunRecord& record, const EngineView& view) {
  if (const std::string trouble = run.Trouble(); !trouble.empty()) return trouble;
  return record.state == RunState::kFinished || record.state == RunState::kStopped ? "ended" : view.phase;
}

}  // namespace terse
