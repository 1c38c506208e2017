// Drives an Engine: a queue that any thread may post to and one thread that handles events in order and keeps the
// timer.
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
  // `clock` must outlive the loop.
  explicit EventLoop(Clock* clock) : clock_(clock) {}

  // Called once, in some thread, when its event was handled (true) or dropped because the loop has ended (false).
  using Done = std::function<void(bool handled)>;

  // Thread-safe, never blocks. Events posted before Run wait for it. A poster that waits for `done` before it posts
  // again has one event in the queue at most.
  void Post(Event event, Done done = nullptr);

  // Runs `call` in the loop's thread, between two events, and waits for it. Not from the loop's own thread. CANCELLED
  // when the loop has ended.
  absl::Status Call(std::function<void()> call);

  // Handles events until Quit or an error of the engine, which it returns.
  absl::Status Run(Engine* engine);
  // Ends Run after the event in hand. Thread-safe.
  void Quit();
  // Returns the number of events that wait. Thread-safe.
  int64_t waiting() const;
  // Returns the times that the engine took for events, ticks and calls. Thread-safe.
  const EventTimes& times() const { return times_; }

 private:
  using Item = std::function<absl::Status(Engine*)>;
  void Push(Item item, Done done);
  // The next item, or nullptr for a tick when `deadline_us` has passed, or when the loop should end. Once it has
  // `ticked`, an item that waits goes first: a timer that is due again at once must not keep the queue waiting.
  Item Pop(int64_t deadline_us, bool ticked, bool* quit);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return quit_ || !queue_.empty(); }

  Clock* const clock_;
  EventTimes times_;
  mutable absl::Mutex mutex_;
  std::deque<Item> queue_ ABSL_GUARDED_BY(mutex_);
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_EVENT_LOOP_H_
