// The calls of admin_service.h that only read: the runs, and all that is kept about one.
#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "coordinator/rpc/admin_reply.h"
#include "coordinator/rpc/admin_service.h"
#include "coordinator/rpc/client_selection.h"
#include "coordinator/rpc/complete_rounds.h"
#include "coordinator/rpc/round_traces.h"
#include "core/status.h"
#include "core/version.h"
#include "proto/grpc_status.h"

namespace terse {
namespace {

constexpr absl::Duration kWatchInterval = absl::Milliseconds(200);
constexpr uint32_t kMaxEvents = 10'000;
constexpr uint32_t kMaxTraces = 10'000;

// An id as the store has them; what is larger than all of them stays so.
int64_t LastId(uint64_t id) {
  constexpr uint64_t kAll = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::min(id, kAll));
}

// 0 as the last id means "to the newest".
int64_t LastOrAll(uint64_t last) { return LastId(last == 0 ? std::numeric_limits<uint64_t>::max() : last); }

int64_t First(uint64_t first) { return LastOrAll(std::max<uint64_t>(first, 1)); }

// Fills a repeated field from rows.
template <typename Rows, typename Add>
absl::Status FillAll(const absl::StatusOr<Rows>& rows, Add add) {
  if (!rows.ok()) return rows.status();
  for (const auto& row : *rows) Fill(row, add());
  return absl::OkStatus();
}

// Sends what became complete since `next`, which moves on. Whether the run has ended; CANCELLED when nobody listens.
absl::StatusOr<bool> WatchOnce(const RunHost& run, int64_t* next, grpc::ServerWriter<v1::Round>* writer) {
  // The state is read first: rounds that it calls ended are all there afterwards.
  TERSE_ASSIGN_OR_RETURN(const RunRecord record, run.Record());
  const bool ended = HasEnded(record.state);
  const EngineView view = run.View();
  std::vector<RoundRecord> rounds;
  TERSE_RETURN_IF_ERROR(run.Use([&](const RunHost::Live& live) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(rounds, live.store->Rounds(*next, LastOrAll(0)));
    return absl::OkStatus();
  }));
  rounds.resize(CountComplete(run, view, rounds, ended));
  for (const RoundRecord& round : rounds) {
    v1::Round out;
    Fill(round, &out);
    if (!writer->Write(out)) return absl::CancelledError("the operator went away");
    *next = round.id + 1;
  }
  return ended;
}

// A run without that event is not the one of which the caller has seen it.
absl::Status MustHaveEvent(int64_t id, RunStore* store) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<EventRecord> newest, store->Events(1));
  const int64_t last = newest.empty() ? 0 : newest.front().id;
  if (id <= last) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("the run has no event ", id, ", its newest is ", last,
                                            ": it was replaced by a backup; ask for its events from the beginning"));
}

}  // namespace

grpc::Status AdminService::ListRuns(grpc::ServerContext*, const v1::RunsRequest*, v1::RunsReply* reply) {
  Fill(process_, reply->mutable_coordinator());
  for (const RunHost* run : runs_->runs()) {
    const absl::StatusOr<RunRecord> record = run->Record();
    if (!record.ok()) return ToGrpc(record.status());
    const EngineView view = run->View();
    v1::Run* out = reply->add_runs();
    out->set_name(run->name());
    out->set_state(std::string(RunStateName(record->state)));
    out->set_phase(PhaseOf(*run, *record, view));
    out->set_serving(run->condition() == RunHost::Condition::kServing);
    out->set_version(view.head.version);
    out->set_rounds_total(run->config().rounds.count);
    out->set_clients_connected(view.sessions.size());
    // A run whose store is closed, damaged or does not answer is listed without its results, because the list is where
    // operators see that something is wrong with it.
    run->Use([&](const RunHost::Live& live) -> absl::Status {
         TERSE_ASSIGN_OR_RETURN(const RunTotals totals, live.store->Totals());
         Fill(totals, out);
         return absl::OkStatus();
       })
        .IgnoreError();
    out->set_lineage(record->lineage.ToBytes());
  }
  return grpc::Status::OK;
}

grpc::Status AdminService::GetStatus(grpc::ServerContext*, const v1::StatusRequest* request, v1::Status* reply) {
  const absl::StatusOr<RunHost*> found = runs_->Find(request->run());
  if (!found.ok()) return ToGrpc(found.status());
  const RunHost& run = **found;
  const absl::StatusOr<RunRecord> record = run.Record();
  if (!record.ok()) return ToGrpc(record.status());
  const EngineView view = run.View();
  reply->set_run(run.name());
  reply->set_lineage(record->lineage.ToBytes());
  reply->set_state(std::string(RunStateName(record->state)));
  reply->set_reason(record->reason);
  reply->set_phase(PhaseOf(run, *record, view));
  reply->set_serving(run.condition() == RunHost::Condition::kServing);
  reply->set_round(view.round);
  reply->set_rounds_total(run.config().rounds.count);
  reply->set_version(view.head.version);
  reply->set_iterations(view.iterations);
  reply->set_model_hash(view.head.model_hash.ToBytes());
  reply->set_parameters(run.codec().layout().parameters());
  reply->set_clients_connected(view.sessions.size());
  reply->set_clients_wanted(run.config().rounds.clients);
  *reply->mutable_config() = run.wire_config();
  reply->set_created_us(record->created_us);
  reply->set_program_version(kVersion);
  // While the store is closed, how many clients it knows is not known.
  run.Use([&](const RunHost::Live& live) -> absl::Status {
       TERSE_ASSIGN_OR_RETURN(const std::vector<ClientRecord> clients, live.store->Clients());
       reply->set_clients_known(clients.size());
       TERSE_ASSIGN_OR_RETURN(const std::vector<BelowRecord> relays, live.store->Below());
       BelowFacts below;
       for (const BelowRecord& relay : relays) below += relay.facts;
       if (!relays.empty()) Fill(below, reply->mutable_below());
       return absl::OkStatus();
     })
      .IgnoreError();
  return grpc::Status::OK;
}

grpc::Status AdminService::ListRounds(grpc::ServerContext*, const v1::RoundsRequest* request, v1::RoundsReply* reply) {
  const absl::StatusOr<RunHost*> run = runs_->Find(request->run());
  if (!run.ok()) return ToGrpc(run.status());
  // As in WatchOnce, before the rounds.
  const absl::StatusOr<RunRecord> record = (*run)->Record();
  if (!record.ok()) return ToGrpc(record.status());
  const EngineView view = (*run)->View();
  std::vector<RoundRecord> rounds;
  const absl::Status listed = (*run)->Use([&](const RunHost::Live& live) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(rounds, live.store->Rounds(First(request->first()), LastOrAll(request->last())));
    return absl::OkStatus();
  });
  if (!listed.ok()) return ToGrpc(listed);
  for (const RoundRecord& round : rounds) Fill(round, reply->add_rounds());
  const size_t complete = CountComplete(**run, view, rounds, HasEnded(record->state));
  reply->set_complete(complete == 0 ? 0 : rounds[complete - 1].id);
  return grpc::Status::OK;
}

grpc::Status AdminService::ListClients(grpc::ServerContext*, const v1::ClientsRequest* request,
                                       v1::ClientsReply* reply) {
  return With(request->run(), [&](const RunHost::Live& live) -> absl::Status {
    TERSE_RETURN_IF_ERROR(AddClients(live, reply));
    return SelectClients(*request, reply);
  });
}

grpc::Status AdminService::ListLedger(grpc::ServerContext*, const v1::LedgerRequest* request, v1::LedgerReply* reply) {
  return With(request->run(), [&](const RunHost::Live& live) {
    return FillAll(live.store->Ledger(First(request->first_round()), LastOrAll(request->last_round())),
                   [&] { return reply->add_rows(); });
  });
}

grpc::Status AdminService::ListMetrics(grpc::ServerContext*, const v1::MetricsRequest* request,
                                       v1::MetricsReply* reply) {
  return With(request->run(), [&](const RunHost::Live& live) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(
        const std::vector<ClientMetrics> metrics,
        live.store->MetricsOfClients(First(request->first_round()), LastOrAll(request->last_round())));
    for (const ClientMetrics& of_client : metrics) AddTo(of_client, reply);
    return absl::OkStatus();
  });
}

grpc::Status AdminService::ListEvents(grpc::ServerContext*, const v1::EventsRequest* request, v1::EventsReply* reply) {
  const uint32_t most = request->newest() == 0 ? kMaxEvents : std::min(request->newest(), kMaxEvents);
  return With(request->run(), [&](const RunHost::Live& live) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> record, live.store->Run());
    reply->set_state(std::string(RunStateName(record->state)));
    if (!request->has_after()) {
      const EventFilter filter = {LastId(request->before()), request->kind(), request->client()};
      return FillAll(live.store->EventsOf(filter, most), [&] { return reply->add_events(); });
    }
    const int64_t after = LastId(request->after());
    TERSE_RETURN_IF_ERROR(MustHaveEvent(after, live.store.get()));
    return FillAll(live.store->EventsAfter(after, most), [&] { return reply->add_events(); });
  });
}

grpc::Status AdminService::ListTraces(grpc::ServerContext*, const v1::TracesRequest* request, v1::TracesReply* reply) {
  const absl::StatusOr<RunHost*> run = runs_->Find(request->run());
  if (!run.ok()) return ToGrpc(run.status());
  const RoundTraces* const traces = (*run)->traces();
  if (traces == nullptr) return grpc::Status::OK;
  // Verdicts are told after the commit of their round, which the caller may have seen already: what the engine is at
  // ends first. Without a loop, nothing is told any more.
  if (const absl::StatusOr<std::shared_ptr<EventLoop>> loop = (*run)->Loop(); loop.ok()) {
    (*loop)->Call([] {}).IgnoreError();
  }
  const uint32_t most = request->most_clients() == 0 ? kMaxTraces : std::min(request->most_clients(), kMaxTraces);
  const RoundTraces::Round round = traces->Get(LastId(request->round()), most);
  for (const ClientTrace& trace : round.clients) Fill(trace, reply->add_clients());
  reply->set_clients_total(static_cast<uint32_t>(round.total));
  reply->set_rounds_kept(static_cast<uint32_t>(traces->most_rounds()));
  return grpc::Status::OK;
}

grpc::Status AdminService::WatchUntilItEnds(grpc::ServerContext* context, const v1::WatchRequest& request,
                                            grpc::ServerWriter<v1::Round>* writer) const {
  const absl::StatusOr<RunHost*> run = runs_->Find(request.run());
  if (!run.ok()) return ToGrpc(run.status());
  int64_t next = First(request.first());
  while (!context->IsCancelled() && !closing_.load()) {
    const absl::StatusOr<bool> ended = WatchOnce(**run, &next, writer);
    // A run that is suspended goes on by itself, and so does the watch.
    const bool is_suspended = (*run)->condition() == RunHost::Condition::kSuspended;
    if (!ended.ok() && !is_suspended) return ToGrpc(ended.status());
    if (ended.ok() && *ended) return grpc::Status::OK;
    absl::SleepFor(kWatchInterval);
  }
  return context->IsCancelled() ? grpc::Status::CANCELLED
                                : grpc::Status(grpc::StatusCode::UNAVAILABLE, "the coordinator is shutting down");
}

}  // namespace terse
