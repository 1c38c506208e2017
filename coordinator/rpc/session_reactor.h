// One client's Session stream on the coordinator.
#ifndef TERSE_COORDINATOR_RPC_SESSION_REACTOR_H_
#define TERSE_COORDINATOR_RPC_SESSION_REACTOR_H_

#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/client_link.h"
#include "coordinator/rpc/fleet_service.h"
#include "proto/session_wire.h"

namespace terse {

// Lives until gRPC is done with the stream and the engine has let go of the link. No reaction blocks.
class SessionReactor : public grpc::ServerBidiReactor<v1::ClientMessage, v1::ServerMessages>, public ClientLink {
 public:
  // Starts reading and posts Connected. The pointer is for gRPC.
  static SessionReactor* Start(const FleetService::Options* options, SessionId id,
                               grpc::CallbackServerContext* context);

  void Send(FromServer message) override ABSL_LOCKS_EXCLUDED(mutex_);
  void SendLater(FromServer message) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Flush() override ABSL_LOCKS_EXCLUDED(mutex_);
  WireBytes Wire() override ABSL_LOCKS_EXCLUDED(mutex_);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  SessionReactor(const FleetService::Options* options, SessionId id, grpc::CallbackServerContext* context);
  // Parses and validates what was read and posts it; on bad bytes refuses the session.
  void Accept();
  void Enqueue(const FromServer& message, std::vector<v1::ServerMessage> chunks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts the next write, unless one is under way, with as many queued messages as fit a chunk.
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishOnce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const FleetService::Options* const options_;
  const SessionId id_;
  grpc::CallbackServerContext* const context_;
  // Reader's side; reactions for reads come one at a time.
  v1::ClientMessage incoming_;
  ClientMessageReader reader_;

  absl::Mutex mutex_;
  std::deque<v1::ServerMessage> outbox_ ABSL_GUARDED_BY(mutex_);
  int64_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::ServerMessages outgoing_ ABSL_GUARDED_BY(mutex_);  // owned by gRPC while writing_
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;      // finish once the outbox is empty
  bool read_closed_ ABSL_GUARDED_BY(mutex_) = false;  // the client half-closed or is gone
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  WireMeter meter_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<SessionReactor> self_;  // gRPC's share; let go in OnDone
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_SESSION_REACTOR_H_
