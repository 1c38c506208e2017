// The coordinator's round engine: a state machine over explicit phases (coordinator/phases). Inputs are events, outputs
// go through the seams ClientLink, RunStore, Background and Clock, so a whole fleet can run in one thread with fake
// time.
#ifndef TERSE_COORDINATOR_ENGINE_H_
#define TERSE_COORDINATOR_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/catch_up.h"
#include "coordinator/engine_state.h"
#include "coordinator/events.h"
#include "coordinator/limits.h"
#include "coordinator/phases/phase.h"

namespace terse {

// One connected client, for an operator.
struct SessionView {
  int64_t client = 0;
  std::string state;  // "training", "waiting", "syncing", "set aside"
  int64_t version = -1;
  int64_t steps_done = 0;
  // The client's own statements on this connection.
  std::string device;                    // empty: it has not
  absl::optional<double> residual_norm;  // NormFrom its code; nullopt: it has not
};

// A consistent picture of the engine, for an operator.
struct EngineView {
  std::string phase;
  int64_t round = 0;
  Head head;
  int64_t iterations = 0;  // of the committed rounds: local steps of a client that took part in all of them
  bool ended = false;
  int64_t evaluating = 0;  // the oldest round whose evaluation is not back; 0: none
  std::vector<SessionView> sessions;
};

class Engine {
 public:
  // Seams and settings; pointers must outlive the engine.
  struct Options {
    RunConfig config;
    const Codec* codec = nullptr;
    const Codec* downstream_codec = nullptr;  // MakeDownstreamCodec of the configuration
    RunStore* store = nullptr;
    Background* background = nullptr;
    Clock* clock = nullptr;
    // Hears every event that goes into the events table; may be empty.
    std::function<void(const EventRecord&)> on_event;
    UpdateHistories* histories = nullptr;  // null: updates are not packed
    // The bytes of the log that are sent at a time to a client that catches up; at least one message is sent.
    int64_t catch_up_bytes = kCatchUpBytes;
    // The most bytes of the log that go to one client. A client that lacks more gets a checkpoint.
    int64_t most_log_bytes = kAnyLogBytes;
    bool evaluates = true;                             // whether `background` has an evaluator
    absl::optional<RelaySetup> relay = absl::nullopt;  // nullopt: the models are made here
  };

  // Resumes the store's run: the head is the newest checkpoint plus the log, replayed and checked by its hash.
  // A relay's CLOSED round becomes COMMITTED if the relay has sealed its result, and ABORTED otherwise, as an OPEN one.
  // DATA_LOSS when it does not match; FAILED_PRECONDITION when the store has no run yet.
  static absl::StatusOr<std::unique_ptr<Engine>> Resume(Options options);

  // Handles a batch of events in order, each with all transitions that follow: decides all of them, makes that durable
  // in one transaction, and only then speaks. Engine's thread only. After an error nothing of the batch has happened or
  // was said, but for what failed after the commit, and the engine is of no use any more: what it believes may not be
  // what is stored. Where IsDiskTrouble says that the disk may recover, the caller drops this engine's sessions and
  // later resumes a new one from the store.
  absl::Status Handle(std::vector<Event> events);
  absl::Status Handle(Event event);
  // For a relay: goes on from a later model, to which no messages lead. Writes it whole, so not within a batch.
  // UNAVAILABLE while a checkpoint is being written: ask again soon. Engine's thread only; after another error, as
  // after one of Handle.
  absl::Status ReplaceModel(int64_t version, std::vector<float> weights);
  // Books what crossed the connections since the last settled round, when the process stops in order. Engine's thread
  // only; the last call.
  absl::Status Close();
  // Refuses every session, with the advice to try again. Engine's thread only; the last call.
  void DropSessions(const std::string& reason);
  // Tells every session that the run is over, upon which its client leaves. Engine's thread only; the last call.
  void EndSessions(const std::string& reason);
  // Returns when to send the next Tick, by the monotonic clock; kNever for not at all. Engine's thread only.
  int64_t NextDeadlineMicros() const;
  // The weights of the head, for an export. Engine's thread only.
  const std::vector<float>& weights() const { return run_.model.weights(); }

  // Whether the rooms agree with each other and with themselves, by looking at everything: for tests. Engine's thread
  // only.
  bool IsConsistent() const;

  // Thread-safe.
  EngineView View() const;

 private:
  explicit Engine(Options options);
  absl::Status Begin(const Codec* downstream_codec);
  absl::Status TakeState(const RunRecord& record);
  // Settles the newest round of a relay, which an earlier process left open or closed.
  absl::Status SettleLeftRound(const RoundRecord& round);
  // Runs `decide` as one batch.
  absl::Status InBatch(absl::FunctionRef<absl::Status()> decide);

  // Handlers of one kind of event each.
  Transition On(Connected event);
  Transition On(Received event);
  Transition On(Disconnected event);
  Transition On(Drained event);
  Transition On(Misbehaved event);
  Transition On(SpoolFailed event);
  Transition On(Evaluated event);
  Transition On(CheckpointWritten event);
  Transition On(Tick event);
  Transition On(StopRequested event);
  Transition On(PauseRequested event);
  Transition On(ResumeRequested event);
  Transition On(AbortRequested event);
  Transition On(SetAsideRequested event);
  Transition On(RoundOrdered event);
  Transition On(OrderWithdrawn event);
  Transition On(HandedUp event);
  Transition On(ModelMoved event);
  Transition On(RunEndedAbove event);
  Transition OnMessage(Session& session, FromClient message);
  Transition OnSent(Session& session, Update update);

  // Ends the run, unless something ended it before.
  Transition End(RunState state, const std::string& reason);
  // Enters `next` and whatever follows it at once.
  absl::Status Move(absl::optional<PhaseName> next);
  absl::Status FlushLedger();
  void PublishView();
  SessionView ViewOf(const Session& session) const;

  EngineState run_;
  EvaluationLimits evaluation_limits_;
  std::unique_ptr<Phase> phase_;

  mutable absl::Mutex view_mutex_;
  EngineView view_ ABSL_GUARDED_BY(view_mutex_);                                      // without its sessions
  absl::btree_map<int64_t, SessionView> session_views_ ABSL_GUARDED_BY(view_mutex_);  // by client
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_ENGINE_H_
