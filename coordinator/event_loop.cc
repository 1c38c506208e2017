#include "coordinator/event_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/synchronization/notification.h"

namespace terse {

void EventLoop::Push(Item item, Done done) {
  // Tells `done` when the queue lets go of the item, whether it ran or was dropped.
  struct Delivery {
    ~Delivery() {
      if (done != nullptr) done(ran);
    }
    Done done;
    bool ran = false;
  };
  auto delivery = std::make_shared<Delivery>();
  delivery->done = std::move(done);
  Item whole = [delivery, item = std::move(item)](Engine* engine) {
    delivery->ran = true;
    return item(engine);
  };
  delivery.reset();
  absl::MutexLock lock(&mutex_);
  if (!quit_) queue_.push_back(std::move(whole));
}

void EventLoop::Post(Event event, Done done) {
  auto shared = std::make_shared<Event>(std::move(event));
  Push([shared](Engine* engine) { return engine->Handle(std::move(*shared)); }, std::move(done));
}

absl::Status EventLoop::Call(std::function<void()> call) {
  absl::Notification done;
  bool ran = false;
  Push(
      [call = std::move(call)](Engine*) {
        call();
        return absl::OkStatus();
      },
      [&](bool has_run) {
        ran = has_run;
        done.Notify();
      });
  done.WaitForNotification();
  return ran ? absl::OkStatus() : absl::CancelledError("the coordinator is shutting down");
}

EventLoop::Item EventLoop::Pop(int64_t deadline_us, bool ticked, bool* quit) {
  absl::MutexLock lock(&mutex_);
  const int64_t wait_us =
      deadline_us == kNever ? kNever : std::max<int64_t>(0, deadline_us - clock_->MonotonicMicros());
  const absl::Duration wait = wait_us == kNever ? absl::InfiniteDuration() : absl::Microseconds(wait_us);
  mutex_.AwaitWithTimeout(absl::Condition(this, &EventLoop::HasWork), wait);
  *quit = quit_;
  // A timer that was due already goes first, every other time: a queue that never empties must not hold it up.
  if (quit_ || queue_.empty() || (wait_us == 0 && !ticked)) return nullptr;
  Item item = std::move(queue_.front());
  queue_.pop_front();
  return item;
}

absl::Status EventLoop::Run(Engine* engine) {
  bool ticked = false;  // the last time round
  while (true) {
    bool quit = false;
    Item item = Pop(engine->NextDeadlineMicros(), ticked, &quit);
    if (quit) return absl::OkStatus();
    ticked = item == nullptr;
    // Simulations set clock_, and what an event costs is real time in them too.
    const auto began = std::chrono::steady_clock::now();
    const absl::Status status = item != nullptr ? item(engine) : engine->Handle(Tick{});
    times_.Record(std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count());
    if (!status.ok()) {
      Quit();
      return status;
    }
  }
}

int64_t EventLoop::waiting() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(queue_.size());
}

void EventLoop::Quit() {
  std::deque<Item> dropped;
  absl::MutexLock lock(&mutex_);
  quit_ = true;
  dropped.swap(queue_);
}

}  // namespace terse
