#include "coordinator/rpc/admin_service.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status.h"
#include "core/version.h"
#include "proto/grpc_status.h"
#include "proto/session_wire.h"

namespace terse {
namespace {

constexpr absl::Duration kWatchInterval = absl::Milliseconds(200);
constexpr uint32_t kMaxEvents = 10'000;

// 0 as the last id means "to the newest".
int64_t LastOrAll(uint64_t last) {
  constexpr uint64_t kAll = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(last == 0 ? kAll : std::min(last, kAll));
}

int64_t First(uint64_t first) { return LastOrAll(std::max<uint64_t>(first, 1)); }

void Fill(const RoundRecord& round, v1::Round* out) {
  out->set_id(round.id);
  out->set_state(std::string(RoundStateName(round.state)));
  out->set_base_version(round.base_version);
  out->set_opened_us(round.opened_us);
  out->set_closed_us(round.closed_us);
  out->set_committed_us(round.committed_us);
  out->set_updates(round.updates);
  out->set_train_us_max(round.train_us_max);
  out->set_train_loss(round.train_loss);
  if (round.accuracy.has_value()) out->set_accuracy(*round.accuracy);
  if (round.test_loss.has_value()) out->set_test_loss(*round.test_loss);
  out->set_dense_bytes_up(round.dense_bytes_up);
  out->set_payload_bytes_up(round.payload_bytes_up);
  out->set_wire_bytes_up(round.wire_bytes_up);
  out->set_dense_bytes_down(round.dense_bytes_down);
  out->set_payload_bytes_down(round.payload_bytes_down);
  out->set_wire_bytes_down(round.wire_bytes_down);
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
}

void AddSession(const SessionView& session, v1::Client* out) {
  out->set_connected(true);
  out->set_state(session.state);
  out->set_version(std::max<int64_t>(0, session.version));
  out->set_steps_done(session.steps_done);
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

bool IsSettled(const RoundRecord& round) {
  return round.state == RoundState::kCommitted || round.state == RoundState::kAborted;
}

}  // namespace

absl::StatusOr<RunRecord> AdminService::Run() const {
  TERSE_ASSIGN_OR_RETURN(absl::optional<RunRecord> run, options_.store->Run());
  if (!run.has_value()) return absl::NotFoundError("the store holds no run");
  return *std::move(run);
}

grpc::Status AdminService::GetStatus(grpc::ServerContext*, const v1::StatusRequest*, v1::Status* reply) {
  const absl::StatusOr<RunRecord> run = Run();
  if (!run.ok()) return ToGrpc(run.status());
  const absl::StatusOr<std::vector<ClientRecord>> clients = options_.store->Clients();
  if (!clients.ok()) return ToGrpc(clients.status());
  const EngineView view = options_.engine->View();
  reply->set_run(run->name);
  reply->set_lineage(run->lineage.ToBytes());
  reply->set_state(std::string(RunStateName(run->state)));
  reply->set_phase(run->state == RunState::kActive ? view.phase : "ended");
  reply->set_round(view.round);
  reply->set_rounds_total(options_.config.rounds().count());
  reply->set_version(view.head.version);
  reply->set_model_hash(view.head.model_hash.ToBytes());
  reply->set_parameters(run->parameters);
  reply->set_clients_connected(view.sessions.size());
  reply->set_clients_known(clients->size());
  reply->set_clients_wanted(options_.config.rounds().clients());
  *reply->mutable_config() = options_.config;
  reply->set_created_us(run->created_us);
  reply->set_program_version(kVersion);
  return grpc::Status::OK;
}

grpc::Status AdminService::ListRounds(grpc::ServerContext*, const v1::RoundsRequest* request, v1::RoundsReply* reply) {
  const auto rounds = options_.store->Rounds(First(request->first()), LastOrAll(request->last()));
  if (!rounds.ok()) return ToGrpc(rounds.status());
  for (const RoundRecord& round : *rounds) Fill(round, reply->add_rounds());
  return grpc::Status::OK;
}

grpc::Status AdminService::ListClients(grpc::ServerContext*, const v1::ClientsRequest*, v1::ClientsReply* reply) {
  const auto clients = options_.store->Clients();
  if (!clients.ok()) return ToGrpc(clients.status());
  const auto ledger = options_.store->Ledger(1, LastOrAll(0));
  if (!ledger.ok()) return ToGrpc(ledger.status());
  absl::flat_hash_map<int64_t, v1::Client*> by_id;
  for (const ClientRecord& client : *clients) {
    v1::Client* out = reply->add_clients();
    Fill(client, out);
    by_id[client.id] = out;
  }
  for (const SessionView& session : options_.engine->View().sessions) {
    if (auto it = by_id.find(session.client); it != by_id.end()) AddSession(session, it->second);
  }
  for (const LedgerEntry& entry : *ledger) {
    if (auto it = by_id.find(entry.client); it != by_id.end()) AddBytes(entry, it->second);
  }
  return grpc::Status::OK;
}

grpc::Status AdminService::ListLedger(grpc::ServerContext*, const v1::LedgerRequest* request, v1::LedgerReply* reply) {
  const auto ledger = options_.store->Ledger(First(request->first_round()), LastOrAll(request->last_round()));
  if (!ledger.ok()) return ToGrpc(ledger.status());
  for (const LedgerEntry& entry : *ledger) {
    v1::LedgerRow* row = reply->add_rows();
    row->set_round(entry.round);
    row->set_client(entry.client);
    row->set_direction(entry.direction == Direction::kUp ? "up" : "down");
    row->set_dense_bytes(entry.dense_bytes);
    row->set_payload_bytes(entry.payload_bytes);
    row->set_wire_bytes(entry.wire_bytes);
  }
  return grpc::Status::OK;
}

grpc::Status AdminService::ListEvents(grpc::ServerContext*, const v1::EventsRequest* request, v1::EventsReply* reply) {
  const uint32_t newest = request->newest() == 0 ? kMaxEvents : std::min(request->newest(), kMaxEvents);
  const auto events = options_.store->Events(newest);
  if (!events.ok()) return ToGrpc(events.status());
  for (const EventRecord& event : *events) {
    v1::Event* out = reply->add_events();
    out->set_time_us(event.time_us);
    out->set_kind(event.kind);
    out->set_round(event.round);
    out->set_client(event.client);
    out->set_detail(event.detail);
  }
  return grpc::Status::OK;
}

bool AdminService::IsComplete(const RoundRecord& round, bool run_ended) const {
  if (!IsSettled(round)) return false;
  if (run_ended || round.state == RoundState::kAborted || round.accuracy.has_value()) return true;
  const int64_t version = round.base_version + 1;
  // An evaluation that a restart lost does not come any more; a later one is then on its way.
  if (options_.engine->View().head.version >= version + options_.config.rounds().evaluate_every()) return true;
  return version % options_.config.rounds().evaluate_every() != 0 && version < options_.config.rounds().count();
}

grpc::Status AdminService::Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                                 grpc::ServerWriter<v1::Round>* writer) {
  int64_t next = First(request->first());
  while (!context->IsCancelled() && !closing_.load()) {
    // The state is read first: rounds that it calls ended are all there afterwards.
    const absl::StatusOr<RunRecord> run = Run();
    if (!run.ok()) return ToGrpc(run.status());
    const bool ended = run->state != RunState::kActive;
    const auto rounds = options_.store->Rounds(next, LastOrAll(0));
    if (!rounds.ok()) return ToGrpc(rounds.status());
    for (const RoundRecord& round : *rounds) {
      if (!IsComplete(round, ended)) break;
      v1::Round out;
      Fill(round, &out);
      if (!writer->Write(out)) return grpc::Status::OK;
      next = round.id + 1;
    }
    if (ended) return grpc::Status::OK;
    absl::SleepFor(kWatchInterval);
  }
  return context->IsCancelled() ? grpc::Status::CANCELLED
                                : grpc::Status(grpc::StatusCode::UNAVAILABLE, "the coordinator is shutting down");
}

grpc::Status AdminService::Stop(grpc::ServerContext*, const v1::StopRequest* request, v1::StopReply* reply) {
  const absl::StatusOr<RunRecord> run = Run();
  if (!run.ok()) return ToGrpc(run.status());
  if (request->shutdown()) {
    reply->set_state("shutting down");
    options_.shut_down();
    return grpc::Status::OK;
  }
  if (run->state == RunState::kActive) options_.loop->Post(StopRequested{});
  reply->set_state(run->state == RunState::kActive ? "stopping" : std::string(RunStateName(run->state)));
  return grpc::Status::OK;
}

grpc::Status AdminService::Export(grpc::ServerContext*, const v1::ExportRequest* request,
                                  grpc::ServerWriter<v1::ExportChunk>* writer) {
  std::vector<float> weights;
  const absl::Status copied = options_.loop->Call([&] { weights = options_.engine->weights(); });
  if (!copied.ok()) return ToGrpc(copied);
  const absl::StatusOr<std::string> bytes = options_.exporter(request->format(), weights);
  if (!bytes.ok()) return ToGrpc(bytes.status());
  for (size_t at = 0; at < bytes->size(); at += kChunkBytes) {
    v1::ExportChunk chunk;
    chunk.set_total(bytes->size());
    chunk.set_data(bytes->substr(at, kChunkBytes));
    if (!writer->Write(chunk)) return grpc::Status::CANCELLED;
  }
  return grpc::Status::OK;
}

}  // namespace terse
