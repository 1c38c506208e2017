// A client of a load: its connections to the coordinator, one after the other, and the stream on each.
#ifndef TERSE_BENCH_FLEET_LOAD_SESSION_H_
#define TERSE_BENCH_FLEET_LOAD_SESSION_H_

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "bench/fleet/load_protocol.h"
#include "grpcpp/grpcpp.h"
#include "security/transport_options.h"
#include "terse/v1/fleet.grpc.pb.h"

namespace terse {

class LoadSession;

// The news of a session, in the order in which they happen.
enum class SessionNews {
  kWelcomed,  // once for each connection
  kDownload,  // Download is to be called
  kEnded,     // the last: the session may be destroyed
};
using OnSessionNews = std::function<void(SessionNews news)>;

// One connection, a channel of its own, and its Session stream, with gRPC's callbacks: it needs no thread. Messages are
// answered in gRPC's threads. Thread-safe but for its construction and destruction.
class LoadSession : public grpc::ClientBidiReactor<v1::ClientMessage, v1::ServerMessages> {
 public:
  struct Peer {
    std::string address;  // host:port
    TransportOptions transport;
  };
  // Connects, checks in and goes on by itself. Statuses of ConnectWith. `protocol` must outlive the session, which must
  // live until kEnded. `on_news` is called in gRPC's threads, with locks held: it must not call the session.
  static absl::StatusOr<std::unique_ptr<LoadSession>> Start(const Peer& peer, LoadProtocol* protocol,
                                                            OnSessionNews on_news);

  // Downloads the newest checkpoint over the same connection, and answers with it. Waits for it.
  void Download() ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends it soon.
  void Cancel() { context_.TryCancel(); }

  // Returns why it has ended: OK after the run's end, UNAVAILABLE when coming back can help.
  absl::Status end() const ABSL_LOCKS_EXCLUDED(mutex_);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  LoadSession(std::shared_ptr<grpc::Channel> channel, LoadProtocol* protocol, OnSessionNews on_news);

  absl::Status Answer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Say(std::vector<v1::ClientMessage> messages) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the stream unless `why` is OK, and removes the hold. Nothing is read afterwards, and Say adds nothing to what
  // is waiting to be written.
  void EndReading(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the stream because of `why`, unless it ends already.
  void Fail(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::string> Fetch(const Id128& lineage, int64_t version) const;

  const std::unique_ptr<v1::Fleet::Stub> stub_;
  const OnSessionNews on_news_;
  grpc::ClientContext context_;
  v1::ServerMessages incoming_;  // gRPC's while it reads
  mutable absl::Mutex mutex_;
  LoadProtocol* const protocol_ ABSL_PT_GUARDED_BY(mutex_);
  std::list<v1::ClientMessage> outbox_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  bool over_ ABSL_GUARDED_BY(mutex_) = false;                    // the run is finished
  bool read_to_end_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_LOAD_SESSION_H_
