#include "coordinator/event_loop.h"

#include <algorithm>
#include <utility>

#include "absl/synchronization/notification.h"

namespace terse {

void EventLoop::Push(Item item) {
  absl::MutexLock lock(&mutex_);
  if (!quit_) queue_.push_back(std::move(item));
}

void EventLoop::Post(Event event) {
  auto shared = std::make_shared<Event>(std::move(event));
  Push([shared](Engine* engine) { return engine->Handle(std::move(*shared)); });
}

absl::Status EventLoop::Call(std::function<void()> call) {
  // A call that the loop drops when it ends notifies from the destructor of what the item holds.
  struct Waiter {
    explicit Waiter(std::shared_ptr<absl::Notification> n) : done(std::move(n)) {}
    ~Waiter() { done->Notify(); }
    const std::shared_ptr<absl::Notification> done;
  };
  auto done = std::make_shared<absl::Notification>();
  auto ran = std::make_shared<bool>(false);
  {
    auto waiter = std::make_shared<Waiter>(done);
    Push([waiter, ran, call = std::move(call)](Engine*) {
      call();
      *ran = true;
      return absl::OkStatus();
    });
  }
  done->WaitForNotification();
  return *ran ? absl::OkStatus() : absl::CancelledError("the coordinator is shutting down");
}

EventLoop::Item EventLoop::Pop(int64_t deadline_us, bool* quit) {
  absl::MutexLock lock(&mutex_);
  const int64_t wait_us = deadline_us == kNever ? kNever : std::max<int64_t>(0, deadline_us - clock_->NowMicros());
  const absl::Duration wait = wait_us == kNever ? absl::InfiniteDuration() : absl::Microseconds(wait_us);
  mutex_.AwaitWithTimeout(absl::Condition(this, &EventLoop::HasWork), wait);
  *quit = quit_;
  // A timer that was due already goes first: a queue that never empties must not hold it up.
  if (quit_ || queue_.empty() || wait_us == 0) return nullptr;
  Item item = std::move(queue_.front());
  queue_.pop_front();
  return item;
}

absl::Status EventLoop::Run(Engine* engine) {
  while (true) {
    bool quit = false;
    Item item = Pop(engine->NextDeadlineMicros(), &quit);
    if (quit) return absl::OkStatus();
    const absl::Status status = item != nullptr ? item(engine) : engine->Handle(Tick{});
    if (!status.ok()) {
      Quit();
      return status;
    }
  }
}

void EventLoop::Quit() {
  std::deque<Item> dropped;
  absl::MutexLock lock(&mutex_);
  quit_ = true;
  dropped.swap(queue_);
}

}  // namespace terse
