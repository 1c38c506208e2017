// The state that the phases of a run share: configuration, seams, the head's weights and the connected sessions. Owned
// by the Engine and used only from its thread.
#ifndef TERSE_COORDINATOR_RUN_CONTEXT_H_
#define TERSE_COORDINATOR_RUN_CONTEXT_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/types/optional.h"
#include "compression/codec.h"
#include "coordinator/background.h"
#include "coordinator/byte_book.h"
#include "coordinator/control/controller.h"
#include "coordinator/events.h"
#include "coordinator/repeated_events.h"
#include "coordinator/server_step.h"
#include "coordinator/update_histories.h"
#include "core/clock.h"
#include "core/run_config.h"
#include "storage/run_store.h"

namespace terse {

// One connected client.
struct Session {
  std::shared_ptr<ClientLink> link;
  int64_t client = -1;  // -1 until its check-in was accepted
  std::string name;
  Id128 process;  // of the client, with the number of this connection of it, both as it checked in
  uint32_t connection = 0;
  bool refused = false;          // what it still says is not heard
  bool said_ready = false;       // so samples and layout are known
  bool applied_unheard = false;  // an update of its was applied between its check-in and its Ready
  Id128 last_applied;
  // Version of the weights that the client holds, or will hold once it has read what was sent; nullopt while it loads.
  absl::optional<int64_t> version;
  bool draining = false;           // a part of the log is on its way; the rest follows once it has left
  bool awaits_checkpoint = false;  // it lacks more than the log gives it, and a checkpoint is being written
  int64_t assigned_round = 0;      // the round that it works for; 0 once its update came, and before
  int64_t owes_round = 0;          // round of an update that it sealed on an earlier connection and will send again
  int64_t steps_done = 0;          // its last report of progress in assigned_round
  int64_t samples = 0;             // of its training data; 0: it has not said
  int64_t set_aside_until_us = 0;  // by the monotonic clock; 0: it may take part
  std::string device;              // where it trains; empty: it has not said
  absl::optional<int> norm_code;   // of what its newest update left behind; nullopt: it has not said
  int drifts = 0;                  // how often the model that it says it holds was not the run's
  WireBytes booked;                // part of link->Wire() that is in the book
};

// The size of a client's history in the store.
struct HistoryLog {
  int64_t messages = 0;  // applied updates since the last reset
  int64_t bytes = 0;     // of those that are no part of its state yet
};

// The facts that this process remembers of a client beyond its row and its session.
struct ClientNotes {
  // The oldest and the newest round whose work the client was given since its last update came; 0: none. A client that
  // says Ready while it works is given more, and delivers what it took up.
  int64_t first_given = 0;
  int64_t last_given = 0;
  int64_t folded = 0;  // updates that were not applied since the last that was, or since the client was reset
  // L2 norm of its newest applied update, with the local steps and the coding that led to it; below 0: none is known.
  double norm = -1;
  int64_t norm_steps = 0;
  int64_t norm_choice = 0;
};

// An update of the open round.
struct ReceivedUpdate {
  Update update;
  Id128 prev_applied;     // the client's last applied update when this one was accepted: it was made after that one
  int64_t samples = 0;    // the client's when the update came
  int64_t staleness = 0;  // versions between the weights that it was made from and the head
  int64_t count = 1;      // how often it goes into the average; above 1 only under Mutant::kNoDeduplication
};

// A run whose updates give no model in so many rounds in a row is paused.
inline constexpr int64_t kMostUnusableRounds = 10;

// The bytes of the log that are sent to one client at a time: a part of the bytes that may be queued for it
// (RunHost::max_queued_bytes).
inline constexpr int64_t kCatchUpBytes = int64_t{16} << 20;

// No limit for the log to one client. Under a smaller one, a client that lacks more, be it a single message, gets a
// checkpoint.
inline constexpr int64_t kAnyLogBytes = std::numeric_limits<int64_t>::max();

// The end of a run, planned or reached.
struct Ending {
  RunState state = RunState::kFinished;
  std::string reason;  // one line for people
};

// Pointers are not owned.
struct RunContext {
  std::shared_ptr<const RunConfig> config;
  Id128 lineage;
  Id128 start_hash;  // of version 0; zero: not known
  const Codec* codec = nullptr;
  RunStore* store = nullptr;
  Background* background = nullptr;
  Clock* clock = nullptr;
  UpdateHistories* histories = nullptr;  // null: updates are not packed
  int64_t catch_up_bytes = kCatchUpBytes;
  int64_t most_log_bytes = kAnyLogBytes;
  std::function<void(const EventRecord&)> on_event;  // for the log

  Head head;
  std::vector<float> weights;              // of head.version
  std::unique_ptr<ServerStep> server;      // its state is of head.version too
  std::unique_ptr<Controller> controller;  // saw all committed rounds; null: every round is as the configuration says
  RoundPlan plan;                          // of `round`, once it opened
  int64_t iterations = 0;                  // of the committed rounds
  int64_t round = 0;                       // the open round, or the last settled one
  bool round_open = false;
  int64_t round_opened_us = 0;
  int64_t created_us = 0;          // of the run; by the monotonic clock, so below 0 for one that is older than that
  int64_t unusable_rounds = 0;     // in a row, up to now: aborted because their updates gave no model
  bool paused = false;             // no round opens
  absl::optional<Ending> ending;   // set once the run is to end
  int64_t checkpoint_version = 0;  // of the newest checkpoint file
  bool checkpoint_running = false;
  absl::optional<int64_t> evaluating;  // newest round that was given to the evaluator and is not back
  absl::btree_map<SessionId, Session> sessions;
  int64_t resumed_us = 0;                     // when this engine began, by the monotonic clock, as what follows
  absl::btree_map<int64_t, int64_t> left_us;  // of clients that may come back soon: when they left (absence.h)
  // Clients that were given work in the open round, connected or not.
  absl::btree_set<int64_t> invited;
  // Validated updates of the open round by client index: the order of aggregation.
  absl::btree_map<int64_t, ReceivedUpdate> received;
  absl::btree_map<int64_t, ClientNotes> notes;  // by client index
  int64_t resumed_round = 0;  // the newest round when this process began: who had work then is not known here
  // The stored histories of the clients whose own history this engine found equal, and goes on with.
  absl::btree_map<int64_t, HistoryLog> history_logs;
  bool histories_full = false;  // for some client there was no room, and the events say so
  ByteBook book;
  RepeatedEvents repeated_events;

  const Layout& layout() const { return codec->layout(); }
  // The bytes of dense float32 communication after every local iteration, in one direction, per round and client.
  int64_t DenseBytesPerRound() const { return 4 * layout().size() * plan.local_steps; }
  Checkpoint HeadCheckpoint() const { return {head.version, head.model_hash, weights, server->state()}; }
  // Has the head's checkpoint written, unless one is being written.
  void BeginCheckpoint() {
    if (checkpoint_running) return;
    checkpoint_running = true;
    background->WriteCheckpoint(HeadCheckpoint());
  }
  // Unix time, for what is stored and shown.
  int64_t Now() const { return clock->NowMicros(); }
  // The monotonic clock, for deadlines.
  int64_t MonotonicNow() const { return clock->MonotonicMicros(); }
  // Converts a point in Unix time to the monotonic clock, as far as the clock tells now; never 0.
  int64_t MonotonicAt(int64_t unix_us) const { return std::max<int64_t>(1, MonotonicNow() + (unix_us - Now())); }
  // Whether the session works on nothing and is not set aside.
  bool IsFree(const Session& session) const {
    return session.assigned_round == 0 && session.owes_round == 0 && session.set_aside_until_us == 0 &&
           !session.refused;
  }
  // Whether the client may owe the update of `round`: this process gave it that work, or an earlier one may have.
  bool MayOwe(int64_t client, int64_t round) const { return round <= resumed_round || WasGiven(client, round); }
  // Whether this process gave the client that round's work, and no update of the client came since.
  bool WasGiven(int64_t client, int64_t round) const {
    const auto it = notes.find(client);
    return it != notes.end() && it->second.first_given != 0 && it->second.first_given <= round &&
           round <= it->second.last_given;
  }
  // Whether the session is free and holds the head's weights, so that it can be given work.
  bool CanWork(const Session& session) const { return session.version == head.version && IsFree(session); }
  // Adds a row to the events table; `client` is -1 for none.
  absl::Status Note(const std::string& kind, int64_t client, const std::string& detail) const {
    Tell(kind, client, detail);
    return store->AddEvent({Now(), kind, round, client, detail});
  }
  // Notes an event that a client can cause as often as it likes: repetitions are counted.
  absl::Status NoteMisbehaviour(const std::string& kind, int64_t client, const std::string& detail) {
    const bool is_new = repeated_events.Add({Now(), kind, round, client, detail}, MonotonicNow());
    return is_new ? Note(kind, client, detail) : absl::OkStatus();
  }
  // Writes what was counted and is due, or with `all` everything.
  absl::Status NoteRepeated(bool all) {
    for (const EventRecord& event : repeated_events.TakeDue(MonotonicNow(), all)) {
      if (on_event) on_event(event);
      if (const absl::Status added = store->AddEvent(event); !added.ok()) return added;
    }
    return absl::OkStatus();
  }
  // Tells on_event about an event whose row the store adds by itself.
  void Tell(const std::string& kind, int64_t client, const std::string& detail) const {
    if (on_event) on_event({Now(), kind, round, client, detail});
  }
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RUN_CONTEXT_H_
