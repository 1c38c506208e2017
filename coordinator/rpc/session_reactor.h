// One client's Session stream on the coordinator.
#ifndef TERSE_COORDINATOR_RPC_SESSION_REACTOR_H_
#define TERSE_COORDINATOR_RPC_SESSION_REACTOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "coordinator/client_link.h"
#include "coordinator/rpc/due_updates.h"
#include "coordinator/rpc/fleet_service.h"
#include "coordinator/rpc/message_budget.h"
#include "coordinator/rpc/metered_peer.h"
#include "coordinator/rpc/outbox.h"
#include "coordinator/rpc/session_lines.h"
#include "coordinator/rpc/write_budget.h"
#include "coordinator/rpc/write_watch.h"
#include "proto/session_wire.h"

namespace terse {

// Lives until gRPC is done with the stream and the engine has let go of the link. No reaction blocks, but for packed
// updates, of which UpdateHistories::kUnpackingsAtOnce are read at a time.
//
// The first message, a check-in, binds the session to a run. From then on each message goes to the run's loop, and the
// next one is read once it was handled: a peer that sends faster than the engine works waits, and has one message in
// memory. Messages that nobody asked for are read at the pace of its MessageBudget, and an update that is not due is
// not decoded.
//
// A peer that does not read is ended (WriteWatch). A refusal takes the place of all that waits to be written.
class SessionReactor : public grpc::ServerBidiReactor<v1::ClientMessage, v1::ServerMessages>,
                       public ClientLink,
                       public std::enable_shared_from_this<SessionReactor> {
 public:
  // Starts reading. The pointer is for gRPC; what the edge names must outlive the stream.
  static SessionReactor* Start(const FleetEdge& edge, SessionId id, grpc::CallbackServerContext* context);

  void Send(ToClient words) override ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t WaitingBytes() override ABSL_LOCKS_EXCLUDED(mutex_);
  WireBytes Wire() override ABSL_LOCKS_EXCLUDED(mutex_);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  SessionReactor(const FleetEdge& edge, SessionId id, grpc::CallbackServerContext* context);
  // Reads the next message as soon as the client's budget allows it, unless the session ends.
  void ReadNext() ABSL_LOCKS_EXCLUDED(mutex_);
  // Parses and validates what was read and posts it; on bad bytes refuses the session. Whether reading has to wait for
  // OnHandled.
  bool Accept();
  // nullopt while a payload is incomplete. INVALID_ARGUMENT for what no client sends; UNAVAILABLE when coming back can
  // help; other errors are final.
  absl::StatusOr<absl::optional<FromClient>> Parse();
  // The first message: chooses the run, and posts Connected.
  absl::StatusOr<absl::optional<FromClient>> Bind();
  // The loop has handled the message, or dropped it because it has ended.
  void OnHandled(bool handled) ABSL_LOCKS_EXCLUDED(mutex_);
  void Refuse(const absl::Status& why);
  // Tell the log, at level debug, of what was received or is to be sent.
  void LogReceived(const FromClient& message) ABSL_LOCKS_EXCLUDED(mutex_);
  void LogSent(const FromServer& message) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteLine(int64_t round, absl::string_view text) const;
  // Notes for the traces of rounds, where the coordinator keeps them, what is to be sent.
  void TraceSent(const FromServer& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the update is one that the session was asked for, as DueUpdates::Take.
  bool IsDue(const Update& update) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the client of the session; -1 before its welcome.
  int64_t Client() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the client was told that the run is over: it leaves by itself, and a refusal would overtake that.
  bool IsOver() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the configuration that a Welcome sends; an empty one before the session is bound.
  const v1::RunConfig& Config() const;
  void Enqueue(const FromServer& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts the next write, unless one is under way, with as many queued messages as fit a chunk.
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishOnce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the time until the budgets allow the next message to be read; zero: at once.
  absl::Duration ReadingPause() ABSL_LOCKS_EXCLUDED(mutex_);
  // Posts Drained if somebody waits for it and nothing waits to be sent.
  void TellIfDrained() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RunRegistry* const runs_;
  const SessionId id_;
  grpc::CallbackServerContext* const context_;
  const MeteredPeer peer_;
  SlowDown slow_down_;  // of reading
  const std::shared_ptr<WriteWatch> watch_;
  WriteBudget* const writes_;
  // Reader's side; reactions for reads come one at a time. Set once, by Bind: name_, run_, loop_ and reader_, which
  // others see from Connected on.
  v1::ClientMessage incoming_;
  std::string name_;  // as the client says; empty before
  RunHost* run_ = nullptr;
  std::shared_ptr<EventLoop> loop_;
  absl::optional<ClientMessageReader> reader_;

  absl::Mutex mutex_;
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  v1::ServerMessages outgoing_ ABSL_GUARDED_BY(mutex_);  // owned by gRPC while writing_
  WriteBudget::Share share_ ABSL_GUARDED_BY(mutex_);     // of what is being written
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  MessageBudget budget_ ABSL_GUARDED_BY(mutex_);
  DueUpdates due_ ABSL_GUARDED_BY(mutex_);
  bool tell_when_drained_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t client_ ABSL_GUARDED_BY(mutex_) = -1;
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;      // finish once the outbox is empty
  bool overflowed_ ABSL_GUARDED_BY(mutex_) = false;   // more waited than may: the call is cancelled
  bool over_ ABSL_GUARDED_BY(mutex_) = false;         // IsOver
  bool read_closed_ ABSL_GUARDED_BY(mutex_) = false;  // the client half-closed or is gone
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  WireMeter meter_ ABSL_GUARDED_BY(mutex_);
  SessionLine logged_update_ ABSL_GUARDED_BY(mutex_);  // the client's newest: what is said of it names no round
  int64_t traced_round_ ABSL_GUARDED_BY(mutex_) = 0;   // of the newest assignment
  std::shared_ptr<SessionReactor> self_;               // gRPC's share; let go in OnDone
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_SESSION_REACTOR_H_
