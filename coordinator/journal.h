// Everything that the engine has decided and not yet told: what is to be written, and what is to be said once it is
// durable. A room of the engine (engine_state.h) that knows neither the fleet nor the round nor the model.
#ifndef TERSE_COORDINATOR_JOURNAL_H_
#define TERSE_COORDINATOR_JOURNAL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "coordinator/background.h"
#include "coordinator/byte_book.h"
#include "coordinator/client_link.h"
#include "coordinator/repeated_events.h"
#include "storage/run_store.h"

namespace terse {

// Decide, commit, speak: between Begin and Commit the engine changes its store in one transaction, and whatever it says
// meanwhile, to clients, to the background worker or to the log, waits here until that is durable. So nothing is said
// before it is durable, and a batch of events costs one sync. Used from the engine's thread only.
class Journal {
 public:
  // Pointers must outlive the object. `on_event` hears every event of the events table; may be empty.
  Journal(RunStore* store, Background* background, std::function<void(const EventRecord&)> on_event)
      : store_(store), background_(background), on_event_(std::move(on_event)) {}

  RunStore* store() const { return store_; }
  ByteBook& book() { return book_; }

  // Begins a batch. Errors of the store, here and below.
  absl::Status Begin() { return store_->BeginBatch(); }
  // Makes the batch durable, calls `committed`, and then lets out all that waits.
  absl::Status Commit(absl::FunctionRef<void()> committed);
  // Nothing of the batch has happened, and nothing that waits is ever said.
  void Drop();

  // To a client, in order. A message that `may_wait` waits for the client's next one that may not.
  void Say(const std::shared_ptr<ClientLink>& link, FromServer message, bool may_wait = false);
  // Lets the engine hear Drained once all that was said to the client has left.
  void TellWhenDrained(const std::shared_ptr<ClientLink>& link);
  // To the background worker.
  void Evaluate(int64_t round, SharedWeights weights);
  void WriteCheckpoint(HeldCheckpoint checkpoint);
  // Anything else that waits until the batch is durable.
  void Later(std::function<void()> job) {
    jobs_.emplace_back([job = std::move(job)](Background*) { job(); });
  }

  // Adds a row to the events table, and tells the log.
  absl::Status Note(const EventRecord& event);
  // Notes an event that a client can cause as often as it likes: repetitions are counted.
  absl::Status NoteMisbehaviour(const EventRecord& event, int64_t monotonic_us);
  // Writes what was counted and is due, or with `all` everything.
  absl::Status NoteRepeated(int64_t monotonic_us, bool all);
  // When NoteRepeated has something to write.
  int64_t NextNoteMicros() const { return repeated_events_.NextMicros(); }
  // Tells the log of an event whose row the store adds by itself.
  void Tell(const EventRecord& event);

 private:
  struct Outgoing {
    std::shared_ptr<ClientLink> link;
    ToClient words;
  };

  // Returns what waits for one client.
  ToClient& To(const std::shared_ptr<ClientLink>& link);
  absl::Status Speak();

  RunStore* const store_;
  Background* const background_;
  const std::function<void(const EventRecord&)> on_event_;
  ByteBook book_;
  RepeatedEvents repeated_events_;
  std::vector<Outgoing> outgoing_;                      // in the order in which the first was said
  absl::flat_hash_map<ClientLink*, size_t> place_;      // in outgoing_
  std::vector<std::function<void(Background*)>> jobs_;  // for the background worker, and others
  std::vector<EventRecord> told_;                       // for the log
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_JOURNAL_H_
