// Drives an Engine: a queue that any thread may post to and one thread that handles what waits, batch by batch in
// order, and keeps the timer.
#ifndef TERSE_COORDINATOR_EVENT_LOOP_H_
#define TERSE_COORDINATOR_EVENT_LOOP_H_

#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/engine.h"
#include "coordinator/event_times.h"

namespace terse {

class EventLoop {
 public:
  // The most events of a batch. Those who come meanwhile wait for its commit.
  static constexpr size_t kMostEvents = 1024;

  // `clock` must outlive the loop.
  explicit EventLoop(Clock* clock);
  ~EventLoop();

  // Called once, in some thread: true when the engine had its event, with what it decided durable unless the engine
  // failed and ends; false when the event was dropped because the loop has ended.
  using Done = std::function<void(bool handled)>;

  // Thread-safe, never blocks. Events posted before Run wait for it. A poster that waits for `done` before it posts
  // again has one event in the queue at most.
  void Post(Event event, Done done = nullptr);

  // Runs `call` in the loop's thread, between two batches, and waits for it. Not from the loop's own thread. CANCELLED
  // when the loop has ended.
  absl::Status Call(std::function<void()> call);

  // Handles events until Quit or an error of the engine, which it returns.
  absl::Status Run(Engine* engine);
  // Ends Run after the batch in hand. What waits, and what is posted from then on, is dropped, but for background work
  // that succeeded. Thread-safe.
  void Quit();
  // Tells the engine of the work that came back too late for Run. In the thread of Run, after it; once no more work is
  // under way.
  absl::Status HandleResults(Engine* engine);
  // Returns the number of events that wait. Thread-safe.
  int64_t waiting() const;
  // Returns the times that the engine took for events, ticks and calls. Thread-safe.
  const EventTimes& times() const { return times_; }

 private:
  // Something that was posted: an event, or a call. Tells `done`, at its end, whether it was handled.
  class Item;
  struct Batch {
    std::deque<std::unique_ptr<Item>> items;  // events, or one call
    bool ticks = false;                       // the timer is due, before them
    bool quit = false;
  };

  void Push(std::unique_ptr<Item> item);
  // Waits for something to do: the events that wait, up to kMostEvents, or a call, or nothing but the timer.
  Batch Pop(int64_t deadline_us);
  static absl::Status Handle(Engine* engine, Batch batch);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return quit_ || !queue_.empty(); }

  Clock* const clock_;
  EventTimes times_;
  mutable absl::Mutex mutex_;
  std::deque<std::unique_ptr<Item>> queue_ ABSL_GUARDED_BY(mutex_);
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_EVENT_LOOP_H_
