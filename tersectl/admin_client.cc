#include "tersectl/admin_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "core/host_port.h"
#include "core/log/plain_text.h"
#include "core/named_metrics.h"
#include "core/status.h"
#include "proto/backup_hash.h"
#include "proto/session_wire.h"
#include "security/connection_failure.h"

namespace terse {
namespace {

// A reply's page: some 100 bytes a round, some 30 a row of the ledger.
constexpr uint64_t kRoundsPerPage = 4096;
constexpr uint64_t kLedgerRowsPerPage = 32768;
constexpr int kMaxReplyBytes = 64 << 20;

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // `watch` waits for a coordinator that restarts.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return arguments;
}

}  // namespace

absl::StatusOr<AdminClient> AdminClient::Make(const Peer& peer, absl::Duration timeout, std::string run) {
  AdminClient client(peer, timeout, std::move(run));
  TERSE_RETURN_IF_ERROR(client.Reconnect());
  return client;
}

absl::Status AdminClient::Reconnect() {
  grpc::ChannelArguments arguments = Arguments();
  TERSE_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials,
                         ConnectWith(peer_.transport, peer_.address, {Role::kOperator, Role::kObserver}, &arguments));
  stub_ = v1::Admin::NewStub(grpc::CreateCustomChannel(peer_.address, credentials, arguments));
  return absl::OkStatus();
}

template <typename Request, typename Reply>
absl::Status AdminClient::Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                               Request request, Reply* reply) {
  request.set_run(run_);
  return ToAbsl((stub_.get()->*method)(NewContext(true).get(), request, reply));
}

AdminClient::Context AdminClient::NewContext(bool with_deadline) const {
  Context context(new grpc::ClientContext, [calls = calls_](grpc::ClientContext* ended) {
    {
      absl::MutexLock lock(&calls->mutex);
      calls->contexts.erase(ended);
    }
    delete ended;
  });
  if (with_deadline) context->set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
  absl::MutexLock lock(&calls_->mutex);
  calls_->contexts.insert(context.get());
  if (calls_->cancelled) context->TryCancel();
  return context;
}

void AdminClient::Cancel() {
  absl::MutexLock lock(&calls_->mutex);
  calls_->cancelled = true;
  for (grpc::ClientContext* context : calls_->contexts) context->TryCancel();
}

absl::Status AdminClient::ToAbsl(const grpc::Status& status) const {
  const std::string answer = PlainText(status.error_message());
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return absl::OkStatus();
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::UnavailableError(absl::StrCat(
          "the coordinator at ", peer_.address, " does not answer (",
          ConnectionFailureText(answer, IsCleartext(peer_.transport, peer_.address) ? Spoke::kCleartext : Spoke::kTls),
          "); check that it runs and give the address of its admin service with --admin or TERSE_ADMIN",
          IsUnixSocket(peer_.address) ? ", which is unix:STATE/admin.sock for a coordinator with --state STATE" : ""));
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::UnimplementedError(absl::StrCat(
          "the coordinator at ", peer_.address,
          " does not take this command there: if that is its address for clients (--listen), give the address of its "
          "admin service with --admin or TERSE_ADMIN; otherwise it is of another release than this tersectl",
          answer.empty() ? "" : absl::StrCat(" (", answer, ")")));
    default:
      return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                          absl::StrCat("the coordinator at ", peer_.address, " answers: ", answer));
  }
}

absl::StatusOr<v1::CreateRunReply> AdminClient::CreateRun(const v1::RunConfig& config, absl::string_view module,
                                                          bool paused) {
  const auto context = NewContext(false);
  v1::CreateRunReply reply;
  const auto writer = stub_->CreateRun(context.get(), &reply);
  v1::CreateRunRequest request;
  *request.mutable_config() = config;
  request.set_paused(paused);
  bool going = writer->Write(request);
  for (size_t at = 0; going && at < module.size(); at += kChunkBytes) {
    request.Clear();
    request.set_module(std::string(module.substr(at, kChunkBytes)));
    going = writer->Write(request);
  }
  writer->WritesDone();
  // The upload takes as long as it takes; checking the run does not.
  absl::Notification answered;
  std::atomic<bool> too_late{false};
  std::thread patience([&] {
    if (answered.WaitForNotificationWithTimeout(timeout_)) return;
    too_late = true;
    context->TryCancel();
  });
  const grpc::Status status = writer->Finish();
  answered.Notify();
  patience.join();
  if (!status.ok() && too_late) {
    return absl::DeadlineExceededError(absl::StrCat(
        "the coordinator at ", peer_.address, " checks the run for more than the ", absl::FormatDuration(timeout_),
        " of --timeout, and was told to give it up; give it more time, or ", "look at what the model's forward does"));
  }
  TERSE_RETURN_IF_ERROR(ToAbsl(status));
  return reply;
}

absl::StatusOr<uint64_t> AdminClient::DeleteRun(bool force) {
  v1::DeleteRunRequest request;
  request.set_run(run_);
  request.set_force(force);
  v1::DeleteRunReply reply;
  TERSE_RETURN_IF_ERROR(ToAbsl(stub_->DeleteRun(NewContext(false).get(), request, &reply)));
  return reply.bytes();
}

absl::StatusOr<v1::RunsReply> AdminClient::ListRuns() {
  v1::RunsReply reply;
  TERSE_RETURN_IF_ERROR(ToAbsl(stub_->ListRuns(NewContext(true).get(), v1::RunsRequest(), &reply)));
  return reply;
}

absl::StatusOr<v1::Status> AdminClient::GetStatus() {
  v1::Status reply;
  TERSE_RETURN_IF_ERROR(Call(&Stub::GetStatus, v1::StatusRequest(), &reply));
  return reply;
}

template <typename Row, typename Request, typename Reply>
absl::StatusOr<std::vector<Row>> AdminClient::ListPages(
    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*), void (Request::*set_first)(uint64_t),
    void (Request::*set_last)(uint64_t), const google::protobuf::RepeatedPtrField<Row>& (Reply::*rows)() const,
    const Pages& pages) {
  const uint64_t page = pages.rounds_per_page;
  const uint64_t end = pages.last == 0 ? pages.newest : std::min(pages.last, pages.newest);
  std::vector<Row> all;
  for (uint64_t first = std::max<uint64_t>(pages.first, 1);; first += page) {
    // The last page is open towards rounds that began meanwhile, unless the caller set an end.
    const bool is_last = end < page || first > end - page;
    Request request;
    (request.*set_first)(first);
    (request.*set_last)(is_last ? pages.last : first + page - 1);
    Reply reply;
    TERSE_RETURN_IF_ERROR(Call(method, request, &reply));
    all.insert(all.end(), (reply.*rows)().begin(), (reply.*rows)().end());
    if (is_last) return all;
  }
}

absl::StatusOr<std::vector<v1::Round>> AdminClient::ListRounds(uint64_t first, uint64_t last) {
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, GetStatus());
  return ListPages(&Stub::ListRounds, &v1::RoundsRequest::set_first, &v1::RoundsRequest::set_last,
                   &v1::RoundsReply::rounds, {first, last, status.round(), kRoundsPerPage});
}

absl::StatusOr<std::vector<v1::Round>> AdminClient::ListCompleteRounds(uint64_t first, uint64_t limit) {
  v1::RoundsRequest request;
  request.set_first(first);
  request.set_last(first + limit - 1);
  v1::RoundsReply reply;
  TERSE_RETURN_IF_ERROR(Call(&Stub::ListRounds, request, &reply));
  if (!reply.has_complete()) {
    return absl::UnimplementedError(absl::StrCat("the coordinator at ", peer_.address,
                                                 " is of an earlier release, which does not say which rounds are "
                                                 "complete; update it"));
  }
  std::vector<v1::Round> rounds(reply.rounds().begin(), reply.rounds().end());
  rounds.erase(
      std::find_if(rounds.begin(), rounds.end(), [&](const v1::Round& round) { return round.id() > reply.complete(); }),
      rounds.end());
  return rounds;
}

absl::StatusOr<std::vector<v1::ClientMetric>> AdminClient::ListMetrics(uint64_t first, uint64_t last) {
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, GetStatus());
  const uint64_t most_per_round = kMostMetrics * std::max<uint64_t>(1, status.clients_known());
  return ListPages(&Stub::ListMetrics, &v1::MetricsRequest::set_first_round, &v1::MetricsRequest::set_last_round,
                   &v1::MetricsReply::metrics,
                   {first, last, status.round(), std::max<uint64_t>(1, kLedgerRowsPerPage / most_per_round)});
}

absl::StatusOr<std::vector<v1::LedgerRow>> AdminClient::ListLedger(uint64_t first, uint64_t last) {
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, GetStatus());
  const uint64_t rows_per_round = std::max<uint64_t>(1, 2 * uint64_t{status.clients_known()});
  return ListPages(&Stub::ListLedger, &v1::LedgerRequest::set_first_round, &v1::LedgerRequest::set_last_round,
                   &v1::LedgerReply::rows,
                   {first, last, status.round(), std::max<uint64_t>(1, kLedgerRowsPerPage / rows_per_round)});
}

absl::StatusOr<std::vector<v1::Client>> AdminClient::ListClients() {
  v1::ClientsReply reply;
  TERSE_RETURN_IF_ERROR(Call(&Stub::ListClients, v1::ClientsRequest(), &reply));
  return std::vector<v1::Client>(reply.clients().begin(), reply.clients().end());
}

absl::StatusOr<std::vector<v1::AuditRecord>> AdminClient::ListAudit(uint32_t newest) {
  v1::AuditRequest request;
  request.set_newest(newest);
  v1::AuditReply reply;
  TERSE_RETURN_IF_ERROR(ToAbsl(stub_->ListAudit(NewContext(true).get(), request, &reply)));
  return std::vector<v1::AuditRecord>(reply.records().begin(), reply.records().end());
}

absl::StatusOr<v1::EventsReply> AdminClient::ListEvents(uint32_t newest) {
  v1::EventsRequest request;
  request.set_newest(newest);
  v1::EventsReply reply;
  TERSE_RETURN_IF_ERROR(Call(&Stub::ListEvents, request, &reply));
  return reply;
}

absl::StatusOr<v1::EventsReply> AdminClient::ListEventsAfter(uint64_t after, uint32_t limit) {
  v1::EventsRequest request;
  request.set_after(after);
  request.set_newest(limit);
  v1::EventsReply reply;
  TERSE_RETURN_IF_ERROR(Call(&Stub::ListEvents, request, &reply));
  return reply;
}

absl::StatusOr<v1::TracesReply> AdminClient::ListTraces(uint64_t round, uint32_t most_clients) {
  v1::TracesRequest request;
  request.set_round(round);
  request.set_most_clients(most_clients);
  v1::TracesReply reply;
  const absl::Status listed = Call(&Stub::ListTraces, request, &reply);
  if (!listed.ok() && !absl::IsUnimplemented(listed)) return listed;
  return reply;
}

absl::Status AdminClient::Watch(uint64_t first, const std::function<void(const v1::Round&)>& on_round) {
  v1::WatchRequest request;
  request.set_first(first);
  request.set_run(run_);
  const auto context = NewContext(false);
  const auto reader = stub_->Watch(context.get(), request);
  v1::Round round;
  while (reader->Read(&round)) on_round(round);
  return ToAbsl(reader->Finish());
}

absl::StatusOr<std::string> AdminClient::Stop(bool shutdown) {
  v1::StopRequest request;
  request.set_shutdown(shutdown);
  v1::StopReply reply;
  TERSE_RETURN_IF_ERROR(Call(&Stub::Stop, request, &reply));
  return reply.state();
}

absl::StatusOr<std::string> AdminClient::Pause(const std::string& reason) {
  v1::PauseRequest request;
  request.set_reason(reason);
  v1::StateReply reply;
  TERSE_RETURN_IF_ERROR(Call(&Stub::Pause, request, &reply));
  return reply.state();
}

absl::StatusOr<std::string> AdminClient::Resume() {
  v1::StateReply reply;
  TERSE_RETURN_IF_ERROR(Call(&Stub::Resume, v1::ResumeRequest(), &reply));
  return reply.state();
}

absl::StatusOr<uint64_t> AdminClient::AbortRound(const std::string& reason) {
  v1::AbortRoundRequest request;
  request.set_reason(reason);
  v1::AbortRoundReply reply;
  TERSE_RETURN_IF_ERROR(Call(&Stub::AbortRound, request, &reply));
  return reply.round();
}

absl::StatusOr<int64_t> AdminClient::SetAside(const std::string& client, double seconds, const std::string& reason) {
  v1::SetAsideRequest request;
  request.set_client(client);
  request.set_seconds(seconds);
  request.set_reason(reason);
  v1::SetAsideReply reply;
  TERSE_RETURN_IF_ERROR(Call(&Stub::SetAside, request, &reply));
  return reply.until_us();
}

absl::Status AdminClient::Backup(const std::function<absl::Status(const v1::BackupChunk&)>& on_chunk) {
  v1::BackupRequest request;
  request.set_run(run_);
  const auto context = NewContext(false);
  const auto reader = stub_->Backup(context.get(), request);
  BackupHash hash;
  bool is_whole = false;
  absl::Status status;
  v1::BackupChunk chunk;
  while (status.ok() && reader->Read(&chunk)) {
    is_whole = chunk.hash() == hash.ToBytes();
    hash.Add(chunk);
    if (chunk.hash().empty()) status = on_chunk(chunk);
  }
  if (!status.ok()) context->TryCancel();
  const absl::Status ended = ToAbsl(reader->Finish());
  if (!status.ok()) return status;
  TERSE_RETURN_IF_ERROR(ended);
  if (is_whole) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the backup from ", peer_.address, " did not arrive whole; back up again"));
}

absl::StatusOr<AdminClient::ExportedModel> AdminClient::Export(v1::ExportRequest::Format format, uint64_t max_bytes) {
  v1::ExportRequest request;
  request.set_format(format);
  request.set_run(run_);
  const auto context = NewContext(false);
  const auto reader = stub_->Export(context.get(), request);
  ExportedModel model;
  std::string& file = model.bytes;
  uint64_t total = 0;
  v1::ExportChunk chunk;
  while (reader->Read(&chunk)) {
    total = chunk.total();
    model.version = chunk.version();
    if (total <= max_bytes && file.size() + chunk.data().size() <= total) {
      if (file.empty()) file.reserve(total);
      file += chunk.data();
      continue;
    }
    context->TryCancel();
    reader->Finish().IgnoreError();
    if (total > max_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat("the coordinator at ", peer_.address,
                                                       " announces a model file of ", total, " bytes; at most ",
                                                       max_bytes, " are plausible"));
    }
    return absl::DataLossError(absl::StrCat("the coordinator at ", peer_.address, " sent more than the ", total,
                                            " bytes of the model file; export again"));
  }
  TERSE_RETURN_IF_ERROR(ToAbsl(reader->Finish()));
  const bool may_be_none = format == v1::ExportRequest::FORMAT_VOCABULARY;
  if ((file.empty() && !may_be_none) || file.size() != total) {
    return absl::DataLossError(absl::StrCat("the coordinator at ", peer_.address, " sent ", file.size(), " of ", total,
                                            " bytes of the model file; export again"));
  }
  return model;
}

}  // namespace terse
