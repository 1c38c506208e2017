// The rooms of a run's engine, and what its phases need of several of them at once. Owned by the Engine and used only
// from its thread.
//
//   Fleet    the clients: who is connected, free, invited, set aside
//   Round    the open round and its updates
//   Model    the head, the server's step, checkpoints
//   Journal  the batch in hand: what is to be written, and what is to be said once that is durable
//
// Each keeps its own invariants and knows none of the others. The phases (coordinator/phases) use them, and so do the
// chapters of a session (sessions.h), of a client's history (client_histories.h) and of its failures (set_aside.h).
#ifndef TERSE_COORDINATOR_ENGINE_STATE_H_
#define TERSE_COORDINATOR_ENGINE_STATE_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/types/optional.h"
#include "coordinator/client_histories.h"
#include "coordinator/control/controller.h"
#include "coordinator/fleet.h"
#include "coordinator/journal.h"
#include "coordinator/model.h"
#include "coordinator/round.h"
#include "coordinator/upstream.h"
#include "core/clock.h"
#include "core/run_config.h"
#include "storage/run_store.h"

namespace terse {

// A run whose updates give no model in so many rounds in a row is paused.
inline constexpr int64_t kMostUnusableRounds = 10;

// The end of a run, planned or reached.
struct Ending {
  RunState state = RunState::kFinished;
  std::string reason;  // one line for people
};

// How far a run is.
struct Course {
  int64_t created_us = 0;                  // by the monotonic clock, so below 0 for a run that is older than that
  int64_t iterations = 0;                  // of the committed rounds
  int64_t unusable_rounds = 0;             // in a row, up to now: aborted because their updates gave no model
  bool paused = false;                     // no round opens
  absl::optional<Ending> ending;           // set once the run is to end
  std::unique_ptr<Controller> controller;  // saw all committed rounds; null: every round is as the configuration says
};

struct EngineState {
  std::shared_ptr<const RunConfig> config;
  Id128 lineage;
  Id128 family;                      // of the root's run, whose model all have; a plain coordinator's own lineage
  absl::optional<RelayState> relay;  // nullopt: the models are made here
  Clock* clock = nullptr;
  int64_t catch_up_bytes = 0;  // Engine::Options, as what follows
  int64_t most_log_bytes = 0;
  bool evaluates = true;

  Fleet fleet;
  Round round;
  Model model;
  Journal journal;
  ClientHistories histories;
  Course course;

  RunStore* store() const { return journal.store(); }
  ByteBook& book() { return journal.book(); }
  // Unix time, for what is stored and shown.
  int64_t Now() const { return clock->NowMicros(); }
  // The monotonic clock, for deadlines.
  int64_t MonotonicNow() const { return clock->MonotonicMicros(); }
  // Converts a point in Unix time to the monotonic clock, as far as the clock tells now; never 0.
  int64_t MonotonicAt(int64_t unix_us) const { return std::max<int64_t>(1, MonotonicNow() + (unix_us - Now())); }

  // The bytes of dense float32 communication after every local iteration, in one direction, per round and client.
  int64_t DenseBytesPerRound() const { return 4 * model.layout().size() * round.plan().local_steps; }
  // Whether the session is free and holds the head's weights, so that it can be given work.
  bool CanWork(const Session& session) const { return session.version() == model.head().version && session.IsFree(); }
  // Whether the client may owe the update of that round: this process gave it the work, or an earlier one may have.
  bool MayOwe(int64_t client, int64_t number) const { return number <= round.resumed() || WasGiven(client, number); }
  // Whether this process gave the client that round's work, and no update of the client came since.
  bool WasGiven(int64_t client, int64_t number) const {
    const absl::optional<ClientNotes>& notes = fleet.at(client).notes;
    return notes.has_value() && notes->first_given != 0 && notes->first_given <= number && number <= notes->last_given;
  }

  // Has the head's checkpoint written, unless one is being written.
  void BeginCheckpoint() {
    if (absl::optional<HeldCheckpoint> checkpoint = model.BeginCheckpoint())
      journal.WriteCheckpoint(*std::move(checkpoint));
  }
  // Has the head evaluated, for that round, where somebody can.
  void BeginEvaluation(int64_t number) {
    if (evaluates) journal.Evaluate(number, model.BeginEvaluation(number));
  }

  // Adds or removes a client's update of the open round.
  void AddUpdate(int64_t client, ReceivedUpdate update) {
    round.Add(client, std::move(update));
    fleet.SetDelivered(client, true);
  }
  void RemoveUpdate(int64_t client) {
    round.Remove(client);
    fleet.SetDelivered(client, false);
  }
  // The round is committed or aborted.
  void SettleRound(bool keep_updates) {
    round.Settle(keep_updates);
    fleet.EndRound(keep_updates);
  }

  // An event of the open round, or of the last one; `client` is -1 for none.
  EventRecord EventOf(const std::string& kind, int64_t client, const std::string& detail) const {
    return {Now(), kind, round.number(), client, detail, 0, fleet.at(client).name};
  }
  absl::Status Note(const std::string& kind, int64_t client, const std::string& detail) {
    return journal.Note(EventOf(kind, client, detail));
  }
  absl::Status NoteMisbehaviour(const std::string& kind, int64_t client, const std::string& detail) {
    return journal.NoteMisbehaviour(EventOf(kind, client, detail), MonotonicNow());
  }
  void Tell(const std::string& kind, int64_t client, const std::string& detail) {
    journal.Tell(EventOf(kind, client, detail));
  }
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_ENGINE_STATE_H_
