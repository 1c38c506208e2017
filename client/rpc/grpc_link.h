// CoordinatorLink over gRPC: one bidirectional Session stream, and downloads beside it on the same connection.
#ifndef TERSE_CLIENT_RPC_GRPC_LINK_H_
#define TERSE_CLIENT_RPC_GRPC_LINK_H_

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/coordinator_link.h"
#include "core/wire_meter.h"
#include "grpcpp/grpcpp.h"
#include "proto/keepalive.h"
#include "proto/session_wire.h"
#include "security/connection_failure.h"
#include "security/transport.h"
#include "terse/v1/fleet.grpc.pb.h"

namespace terse {

// One connection attempt and its stream. A thread reads, up to kMaxInboxBytes ahead: while the client trains, what the
// coordinator has to say beyond that waits in the network and at the coordinator, which bounds it. Another thread ends
// writes that a stalled network would keep from noticing that the process should stop; everything else happens in the
// caller's thread.
class GrpcLink : public CoordinatorLink {
 public:
  struct Peer {
    std::string address;  // "host:port"
    TransportOptions transport;
    double keepalive_seconds = kDefaultKeepaliveSeconds;  // as FleetChannelArguments
  };
  // UNAVAILABLE naming the address and the reason (ConnectionFailureText) when nobody whom the TLS folder trusts
  // answers within `timeout`, or when ConnectWith refuses. `stopping` ends every wait and must outlive the link.
  static absl::StatusOr<std::unique_ptr<GrpcLink>> Connect(const Peer& peer, absl::Duration timeout,
                                                           const std::atomic<bool>* stopping);
  ~GrpcLink() override;

  absl::Status Send(const FromClient& message) override;
  // Once the stream has ended: PERMISSION_DENIED when the coordinator refuses this client's certificate,
  // FAILED_PRECONDITION when it sent something that this client does not understand, else UNAVAILABLE.
  absl::StatusOr<FromServer> Receive() override;
  void SetMaxDownstreamBytes(int64_t bytes) override;
  absl::StatusOr<std::string> DownloadCheckpoint(Id128 lineage, int64_t version, int64_t max_bytes) override;
  absl::StatusOr<std::string> DownloadModule(Id128 lineage, int64_t max_bytes) override;

  // Whether the stream ended because nothing came any more, not even the answer to a ping. Thread-safe.
  bool fell_silent() ABSL_LOCKS_EXCLUDED(mutex_);

  // Half-closes the stream and waits for the coordinator to end it, so that both have booked the same bytes.
  void Close();
  // Cumulative bytes of this connection; none before the coordinator has said something. Thread-safe.
  WireBytes Wire() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  GrpcLink(std::shared_ptr<grpc::Channel> channel, Spoke spoke, const std::atomic<bool>* stopping);
  void ReadLoop();
  void CancelSoonAfterStop();
  // Waits until the inbox has room, or nobody takes from it any more.
  void AwaitRoom() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Adds the messages to the inbox. FAILED_PRECONDITION when one of them makes no sense.
  absl::Status Accept(const v1::ServerMessages& messages) ABSL_LOCKS_EXCLUDED(mutex_);
  WireBytes ReadWire() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // From now on everything that comes is read and dropped, so that the stream can end.
  void Abandon() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasMessage() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !inbox_.empty() || ended_; }

  const std::shared_ptr<grpc::Channel> channel_;
  const Spoke spoke_;
  const std::unique_ptr<v1::Fleet::Stub> stub_;
  const std::atomic<bool>* const stopping_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ClientMessage, v1::ServerMessages>> stream_;

  absl::Mutex mutex_;
  // Made once the stream's peer is known.
  std::unique_ptr<WireMeter> meter_ ABSL_GUARDED_BY(mutex_);
  ServerMessageReader reader_ ABSL_GUARDED_BY(mutex_);
  std::deque<FromServer> inbox_ ABSL_GUARDED_BY(mutex_);
  int64_t inbox_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of downstream messages
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // why, once ended_
  bool fell_silent_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ = false;  // caller's thread only
  std::thread read_thread_;
  std::thread stop_thread_;
};

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_GRPC_LINK_H_
