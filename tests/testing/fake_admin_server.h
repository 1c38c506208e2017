// A terse.v1.Admin server on a loopback port that serves what a test put into it.
#ifndef TERSE_TESTS_TESTING_FAKE_ADMIN_SERVER_H_
#define TERSE_TESTS_TESTING_FAKE_ADMIN_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "terse/v1/admin.grpc.pb.h"

namespace terse {

// Set the public members before the first call; they are read without a lock. The replies of a call whose client goes
// before its end have a setter: such a call may still run when the next one begins.
class FakeAdminServer : public v1::Admin::Service {
 public:
  FakeAdminServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeAdminServer() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  v1::Status status;
  std::vector<v1::Round> rounds;
  std::vector<v1::Client> clients;
  std::vector<v1::LedgerRow> ledger;
  std::vector<v1::ClientMetric> metrics;
  std::vector<v1::Event> events;
  std::vector<v1::Run> runs;
  v1::TracesReply traces;
  v1::Coordinator coordinator;
  std::string torchscript = "torchscript bytes";
  std::string safetensors = "safetensors bytes";
  std::string npz = "npz bytes";
  std::string vocabulary;        // empty: the run reads no text
  bool knows_vocabulary = true;  // as every coordinator since that format came
  uint64_t exported_version = 7;
  uint64_t announced_beyond = 0;          // added to the size that Export announces
  std::atomic<bool> export_hangs{false};  // until its call is cancelled
  int watch_breaks = 0;                   // Watch ends so many times with UNAVAILABLE after one round

  uint64_t watch_overlap = 0;  // Watch begins so many rounds before the one asked for

  void SetBackup(std::vector<v1::BackupChunk> chunks) {
    absl::MutexLock lock(&mutex_);
    backup_ = std::move(chunks);
  }

  // Sets what a follower of the events gets: the statuses of its calls, the last of which says that the run has
  // finished, and the events that happened since its first call.
  void SetFollowed(std::deque<grpc::Status> answers, std::vector<v1::Event> events) {
    absl::MutexLock lock(&mutex_);
    event_answers_ = std::move(answers);
    events_to_come_ = std::move(events);
  }

  // The status of the calls that a follower begins with: with anything but OK it is as if the coordinator was not
  // there.
  std::atomic<grpc::StatusCode> presence{grpc::StatusCode::OK};
  std::atomic<bool> finished{false};  // GetStatus says so, whatever `status` has

  std::vector<v1::AuditRecord> audit;
  // Where it is not empty, the runs of these names and no others answer GetStatus and ListRounds.
  struct Held {
    v1::Status status;
    std::vector<v1::Round> rounds;
  };
  std::map<std::string, Held> several;

  std::atomic<int> page_calls{0};
  std::atomic<bool> stopped{false};
  std::atomic<bool> shut_down{false};
  // The requests of CreateRun and DeleteRun, and the answers to them.
  v1::RunConfig created;
  std::string created_module;
  int created_pieces = 0;
  bool created_paused = false;
  grpc::Status creation;
  std::string created_state = "active";
  uint64_t created_elements = 0;  // 0: as of an earlier release
  v1::DeleteRunRequest asked_deletion;
  grpc::Status deletion;
  // The request of the last command; read it when the command has returned.
  std::string asked_run;
  std::string asked_reason;
  v1::SetAsideRequest asked_set_aside;

  grpc::Status CreateRun(grpc::ServerContext*, grpc::ServerReader<v1::CreateRunRequest>* reader,
                         v1::CreateRunReply* reply) override {
    created_module.clear();
    created_pieces = 0;
    for (v1::CreateRunRequest request; reader->Read(&request);) {
      if (request.has_config()) {
        created = request.config();
        created_paused = request.paused();
      }
      created_module += request.module();
      created_pieces += !request.module().empty();
    }
    reply->set_run(created.name());
    reply->set_state(created_state);
    reply->set_elements(created_elements);
    return creation;
  }

  grpc::Status DeleteRun(grpc::ServerContext*, const v1::DeleteRunRequest* request,
                         v1::DeleteRunReply* reply) override {
    asked_deletion = *request;
    reply->set_bytes(1'234'567);
    return deletion;
  }

  grpc::Status ListRuns(grpc::ServerContext*, const v1::RunsRequest*, v1::RunsReply* reply) override {
    *reply->mutable_coordinator() = coordinator;
    for (const v1::Run& run : runs) *reply->add_runs() = run;
    return grpc::Status::OK;
  }

  grpc::Status ListTraces(grpc::ServerContext*, const v1::TracesRequest*, v1::TracesReply* reply) override {
    *reply = traces;
    return grpc::Status::OK;
  }

  grpc::Status Pause(grpc::ServerContext*, const v1::PauseRequest* request, v1::StateReply* reply) override {
    asked_run = request->run();
    asked_reason = request->reason();
    reply->set_state("paused");
    return grpc::Status::OK;
  }

  grpc::Status Resume(grpc::ServerContext*, const v1::ResumeRequest* request, v1::StateReply* reply) override {
    asked_run = request->run();
    reply->set_state("active");
    return grpc::Status::OK;
  }

  grpc::Status AbortRound(grpc::ServerContext*, const v1::AbortRoundRequest* request,
                          v1::AbortRoundReply* reply) override {
    asked_run = request->run();
    if (status.round() == 0) return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "no round is open");
    asked_reason = request->reason();
    reply->set_round(status.round());
    return grpc::Status::OK;
  }

  grpc::Status SetAside(grpc::ServerContext*, const v1::SetAsideRequest* request, v1::SetAsideReply* reply) override {
    asked_set_aside = *request;
    reply->set_until_us(request->seconds() > 0 ? 1'700'000'000'000'000 : 0);
    return grpc::Status::OK;
  }

  grpc::Status Backup(grpc::ServerContext*, const v1::BackupRequest*,
                      grpc::ServerWriter<v1::BackupChunk>* writer) override {
    for (const v1::BackupChunk& chunk : CopyOfBackup()) writer->Write(chunk);
    return grpc::Status::OK;
  }

  grpc::Status ListAudit(grpc::ServerContext*, const v1::AuditRequest*, v1::AuditReply* reply) override {
    for (const v1::AuditRecord& record : audit) *reply->add_records() = record;
    return grpc::Status::OK;
  }

  grpc::Status GetStatus(grpc::ServerContext*, const v1::StatusRequest* request, v1::Status* reply) override {
    asked_run = request->run();
    if (!several.empty()) {
      if (several.count(request->run()) == 0) return grpc::Status(grpc::StatusCode::NOT_FOUND, "there is no such run");
      *reply = several[request->run()].status;
      return grpc::Status::OK;
    }
    *reply = status;
    if (finished) reply->set_state("finished");
    return grpc::Status(presence, "as the test has it");
  }

  grpc::Status ListRounds(grpc::ServerContext*, const v1::RoundsRequest* request, v1::RoundsReply* reply) override {
    ++page_calls;
    for (const v1::Round& round : several.empty() ? rounds : several[request->run()].rounds) {
      if (IsWithin(round.id(), request->first(), request->last())) *reply->add_rounds() = round;
    }
    return grpc::Status::OK;
  }

  grpc::Status ListClients(grpc::ServerContext*, const v1::ClientsRequest*, v1::ClientsReply* reply) override {
    for (const v1::Client& client : clients) *reply->add_clients() = client;
    return grpc::Status::OK;
  }

  grpc::Status ListLedger(grpc::ServerContext*, const v1::LedgerRequest* request, v1::LedgerReply* reply) override {
    for (const v1::LedgerRow& row : ledger) {
      if (IsWithin(row.round(), request->first_round(), request->last_round())) *reply->add_rows() = row;
    }
    return grpc::Status::OK;
  }

  grpc::Status ListMetrics(grpc::ServerContext*, const v1::MetricsRequest* request, v1::MetricsReply* reply) override {
    for (const v1::ClientMetric& metric : metrics) {
      if (IsWithin(metric.round(), request->first_round(), request->last_round())) *reply->add_metrics() = metric;
    }
    return grpc::Status::OK;
  }

  grpc::Status ListEvents(grpc::ServerContext*, const v1::EventsRequest* request, v1::EventsReply* reply) override {
    if (request->has_after()) return ListEventsAfter(*request, reply);
    reply->set_state(status.state());
    const size_t count = std::min<size_t>(request->newest(), events.size());
    for (size_t i = events.size() - count; i < events.size(); ++i) *reply->add_events() = events[i];
    return grpc::Status(presence, "as the test has it");
  }

  grpc::Status Watch(grpc::ServerContext*, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::Round>* writer) override {
    for (const v1::Round& round : rounds) {
      if (round.id() + watch_overlap < request->first()) continue;
      writer->Write(round);
      if (watch_breaks > 0) {
        --watch_breaks;
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken by the test");
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status Stop(grpc::ServerContext*, const v1::StopRequest* request, v1::StopReply* reply) override {
    asked_run = request->run();
    stopped = true;
    shut_down = request->shutdown();
    reply->set_state("stopping");
    return grpc::Status::OK;
  }

  grpc::Status Export(grpc::ServerContext* context, const v1::ExportRequest* request,
                      grpc::ServerWriter<v1::ExportChunk>* writer) override {
    while (export_hangs && !context->IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    const std::string& file = FileOf(request->format());
    if (&file == &vocabulary && !knows_vocabulary) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "unknown export format 4");
    }
    if (file.empty() && &file != &vocabulary) {
      return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no exporter for this format");
    }
    constexpr size_t kChunk = 5;
    for (size_t at = 0; at < file.size(); at += kChunk) {
      v1::ExportChunk chunk;
      chunk.set_total(file.size() + announced_beyond);
      chunk.set_data(file.substr(at, kChunk));
      chunk.set_version(exported_version);
      if (!writer->Write(chunk)) break;
    }
    return grpc::Status::OK;
  }

 private:
  const std::string& FileOf(v1::ExportRequest::Format format) const {
    if (format == v1::ExportRequest::FORMAT_TORCHSCRIPT) return torchscript;
    if (format == v1::ExportRequest::FORMAT_VOCABULARY) return vocabulary;
    return format == v1::ExportRequest::FORMAT_NPZ ? npz : safetensors;
  }

  grpc::Status ListEventsAfter(const v1::EventsRequest& request, v1::EventsReply* reply) {
    absl::MutexLock lock(&mutex_);
    if (!event_answers_.empty()) {
      const grpc::Status answer = event_answers_.front();
      event_answers_.pop_front();
      if (!answer.ok()) return answer;
    }
    reply->set_state(event_answers_.empty() ? "finished" : "active");
    for (const v1::Event& event : events_to_come_) {
      const bool fits = reply->events_size() < static_cast<int>(request.newest());
      if (event.id() > request.after() && fits) *reply->add_events() = event;
    }
    return grpc::Status::OK;
  }

  static bool IsWithin(uint64_t id, uint64_t first, uint64_t last) {
    return id >= first && id <= (last == 0 ? std::numeric_limits<uint64_t>::max() : last);
  }

  std::vector<v1::BackupChunk> CopyOfBackup() {
    absl::MutexLock lock(&mutex_);
    return backup_;
  }

  absl::Mutex mutex_;
  std::vector<v1::BackupChunk> backup_ ABSL_GUARDED_BY(mutex_);
  std::deque<grpc::Status> event_answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::Event> events_to_come_ ABSL_GUARDED_BY(mutex_);
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_FAKE_ADMIN_SERVER_H_
