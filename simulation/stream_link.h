// A simulated client's connection: the session's stream over gRPC, without a thread of its own.
#ifndef TERSE_SIMULATION_STREAM_LINK_H_
#define TERSE_SIMULATION_STREAM_LINK_H_

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/coordinator_link.h"
#include "grpcpp/grpcpp.h"
#include "proto/session_wire.h"
#include "simulation/shared_downloads.h"
#include "terse/v1/fleet.grpc.pb.h"

namespace terse {

// One connection, a channel of its own, and its Session stream, with gRPC's callbacks. What comes is handed on in
// gRPC's threads, at once and in order: nothing waits in the network while other clients of the process train, or the
// coordinator would take this one for slow. Thread-safe but for its construction and destruction.
class StreamLink : public OutboundLink, private grpc::ClientBidiReactor<v1::ClientMessage, v1::ServerMessages> {
 public:
  // A message, or, as the last call, the status with which the stream ended, which is never OK: UNAVAILABLE after an
  // orderly end, too. Called with no lock held; the last call may destroy nothing.
  using OnArrival = std::function<void(absl::StatusOr<FromServer> message)>;

  // Connects to `address`, host:port on this machine, in cleartext. `shared` and `stopping` must outlive the link, and
  // the link must live until the last call of `on_arrival`. Statuses of ConnectWith.
  static absl::StatusOr<std::unique_ptr<StreamLink>> Start(const std::string& address, SharedDownloads* shared,
                                                           const std::atomic<bool>* stopping, OnArrival on_arrival);

  // Queues the message.
  absl::Status Send(const FromClient& message) override ABSL_LOCKS_EXCLUDED(mutex_);
  void SetMaxDownstreamBytes(int64_t bytes) override ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for them.
  absl::StatusOr<std::string> DownloadCheckpoint(Id128 lineage, int64_t version, int64_t max_bytes) override;
  absl::StatusOr<std::string> DownloadModule(Id128 lineage, int64_t max_bytes) override;

  // Ends the stream in order once all that is queued has been sent.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends it soon.
  void Cancel() { context_.TryCancel(); }

 private:
  StreamLink(std::shared_ptr<grpc::Channel> channel, SharedDownloads* shared, const std::atomic<bool>* stopping,
             OnArrival on_arrival);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone(const grpc::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Accept() ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<v1::Fleet::Stub> stub_;
  SharedDownloads* const shared_;
  const std::atomic<bool>* const stopping_;
  const OnArrival on_arrival_;
  grpc::ClientContext context_;
  v1::ServerMessages incoming_;

  absl::Mutex mutex_;
  ServerMessageReader reader_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::ClientMessage> outbox_ ABSL_GUARDED_BY(mutex_);  // the first one is being written
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status unusable_ ABSL_GUARDED_BY(mutex_);  // what came made no sense
};

}  // namespace terse

#endif  // TERSE_SIMULATION_STREAM_LINK_H_
