// The operator's end of terse.v1.Admin.
#ifndef TERSE_TERSECTL_ADMIN_CLIENT_H_
#define TERSE_TERSECTL_ADMIN_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "security/transport.h"
#include "terse/v1/admin.grpc.pb.h"

namespace terse {

// Connects at the first call. Every method returns the coordinator's own status, and UNAVAILABLE with what to try when
// it cannot be reached or does not answer within `timeout`, and CANCELLED after Cancel. Thread-safe, but for Reconnect.
class AdminClient {
 public:
  struct Peer {
    std::string address;  // "host:port" or "unix:/path"
    TransportOptions transport;
  };
  // All requests are about `run`; empty means the only one that the coordinator has. Statuses of ConnectWith.
  static absl::StatusOr<AdminClient> Make(const Peer& peer, absl::Duration timeout, std::string run = "");
  // Goes on over a new connection, with the TLS folder's files as they are now. Statuses of ConnectWith.
  absl::Status Reconnect();
  // Requests from now on are about that run. Not while another thread calls.
  void Select(std::string run) { run_ = std::move(run); }
  // Ends the calls that are under way, and those to come at once. While Reconnect runs, too.
  void Cancel();

  // `module`: the TorchScript file of a run whose model is one. The state in the reply is empty of a coordinator
  // of an earlier release: such a one knows no `paused`. DEADLINE_EXCEEDED when it does not answer within the timeout
  // after the upload, which itself has none: the run is then given up.
  absl::StatusOr<v1::CreateRunReply> CreateRun(const v1::RunConfig& config, absl::string_view module, bool paused);
  // Returns the bytes that are free now. No timeout: what the run's store is about to finish comes first.
  absl::StatusOr<uint64_t> DeleteRun(bool force);
  absl::StatusOr<v1::RunsReply> ListRuns();
  absl::StatusOr<v1::Status> GetStatus();
  // The rounds in [first, last]; last = 0 means up to the newest. Fetched in pages, so that a reply stays small.
  absl::StatusOr<std::vector<v1::Round>> ListRounds(uint64_t first, uint64_t last);
  // At most `limit` rounds from `first` on, in one call: those that are settled with all their figures.
  // UNIMPLEMENTED when the coordinator is of an earlier release, which does not say which these are.
  absl::StatusOr<std::vector<v1::Round>> ListCompleteRounds(uint64_t first, uint64_t limit);
  absl::StatusOr<std::vector<v1::LedgerRow>> ListLedger(uint64_t first, uint64_t last);
  // What single clients reported by name, likewise.
  absl::StatusOr<std::vector<v1::ClientMetric>> ListMetrics(uint64_t first, uint64_t last);
  absl::StatusOr<std::vector<v1::Client>> ListClients();
  absl::StatusOr<v1::EventsReply> ListEvents(uint32_t newest);
  // At most `limit` events, from the first on whose id is greater than `after`. OUT_OF_RANGE when the run has no event
  // `after`, unless that is 0.
  absl::StatusOr<v1::EventsReply> ListEventsAfter(uint64_t after, uint32_t limit);
  // The times of at most so many clients of a round, the slowest, as far as the coordinator keeps them. It keeps none
  // in an earlier release.
  absl::StatusOr<v1::TracesReply> ListTraces(uint64_t round, uint32_t most_clients);
  // The newest so many records of the whole coordinator, oldest first.
  absl::StatusOr<std::vector<v1::AuditRecord>> ListAudit(uint32_t newest);
  // Calls `on_round` for every settled round from `first` on and returns OK when the run has ended. No timeout.
  absl::Status Watch(uint64_t first, const std::function<void(const v1::Round&)>& on_round);
  // These return the state of the run.
  absl::StatusOr<std::string> Stop(bool shutdown);
  absl::StatusOr<std::string> Pause(const std::string& reason);
  absl::StatusOr<std::string> Resume();
  // Returns the id of the round that was given up.
  absl::StatusOr<uint64_t> AbortRound(const std::string& reason);
  // Returns until when the client is set aside (Unix time in microseconds); 0 seconds readmit it.
  absl::StatusOr<int64_t> SetAside(const std::string& client, double seconds, const std::string& reason);
  // Calls `on_chunk` for every chunk but the last and checks the hash: DATA_LOSS when the stream is not whole. Stops at
  // the first error of `on_chunk` and returns it. No timeout.
  absl::Status Backup(const std::function<absl::Status(const v1::BackupChunk&)>& on_chunk);
  struct ExportedModel {
    std::string bytes;
    uint64_t version = 0;  // 0 also from a coordinator of an earlier release
  };
  // The model's file. DATA_LOSS when the stream does not hold what it announced, RESOURCE_EXHAUSTED when it announces
  // more than `max_bytes`. No timeout.
  absl::StatusOr<ExportedModel> Export(v1::ExportRequest::Format format, uint64_t max_bytes);

 private:
  using Stub = v1::Admin::Stub;
  // The calls that are under way.
  struct Calls {
    absl::Mutex mutex;
    bool cancelled ABSL_GUARDED_BY(mutex) = false;
    std::set<grpc::ClientContext*> contexts ABSL_GUARDED_BY(mutex);
  };
  using Context = std::unique_ptr<grpc::ClientContext, std::function<void(grpc::ClientContext*)>>;
  AdminClient(const Peer& peer, absl::Duration timeout, std::string run)
      : peer_(peer), timeout_(timeout), run_(std::move(run)) {}
  // One unary call.
  template <typename Request, typename Reply>
  absl::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*), Request request,
                    Reply* reply);
  Context NewContext(bool with_deadline) const;
  absl::Status ToAbsl(const grpc::Status& status) const;
  // Which rounds a list is of, and how many of them a reply may hold.
  struct Pages {
    uint64_t first, last;  // last = 0: up to the newest
    uint64_t newest;
    uint64_t rounds_per_page;
  };
  // The rows of all replies to consecutive requests, whose setters and rows these are.
  template <typename Row, typename Request, typename Reply>
  absl::StatusOr<std::vector<Row>> ListPages(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                                             void (Request::*set_first)(uint64_t), void (Request::*set_last)(uint64_t),
                                             const google::protobuf::RepeatedPtrField<Row>& (Reply::*rows)() const,
                                             const Pages& pages);

  Peer peer_;
  absl::Duration timeout_;
  std::string run_;
  std::unique_ptr<v1::Admin::Stub> stub_;
  std::shared_ptr<Calls> calls_ = std::make_shared<Calls>();
};

}  // namespace terse

#endif  // TERSE_TERSECTL_ADMIN_CLIENT_H_
