#include "coordinator/event_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/types/optional.h"

namespace terse {

class EventLoop::Item {
 public:
  Item(Event event, Done done) : event_(std::move(event)), done_(std::move(done)) {}
  Item(std::function<void()> call, Done done) : call_(std::move(call)), done_(std::move(done)) {}
  ~Item() {
    if (done_ != nullptr) done_(handled_);
  }
  Item(const Item&) = delete;
  Item& operator=(const Item&) = delete;

  bool is_call() const { return call_ != nullptr; }
  // Work that failed, perhaps because it was told to stop, may be done again.
  bool is_result() const {
    if (!event_.has_value()) return false;
    const auto* evaluated = std::get_if<Evaluated>(&*event_);
    const auto* written = std::get_if<CheckpointWritten>(&*event_);
    return (evaluated != nullptr && evaluated->result.ok()) || (written != nullptr && written->status.ok());
  }
  // Once.
  Event TakeEvent() {
    handled_ = true;
    return *std::move(event_);
  }
  void Call() {
    handled_ = true;
    call_();
  }

 private:
  absl::optional<Event> event_;
  std::function<void()> call_;
  const Done done_;
  bool handled_ = false;
};

EventLoop::EventLoop(Clock* clock) : clock_(clock) {}

EventLoop::~EventLoop() = default;

void EventLoop::Push(std::unique_ptr<Item> item) {
  absl::MutexLock lock(&mutex_);
  if (quit_ && !item->is_result()) return;  // the item is dropped once the lock is released
  queue_.push_back(std::move(item));
}

void EventLoop::Post(Event event, Done done) { Push(std::make_unique<Item>(std::move(event), std::move(done))); }

absl::Status EventLoop::Call(std::function<void()> call) {
  absl::Notification done;
  bool ran = false;
  Push(std::make_unique<Item>(std::move(call), [&](bool has_run) {
    ran = has_run;
    done.Notify();
  }));
  done.WaitForNotification();
  return ran ? absl::OkStatus() : absl::CancelledError("the coordinator is shutting down");
}

EventLoop::Batch EventLoop::Pop(int64_t deadline_us) {
  absl::MutexLock lock(&mutex_);
  const int64_t wait_us =
      deadline_us == kNever ? kNever : std::max<int64_t>(0, deadline_us - clock_->MonotonicMicros());
  const absl::Duration wait = wait_us == kNever ? absl::InfiniteDuration() : absl::Microseconds(wait_us);
  Batch batch;
  batch.ticks = !mutex_.AwaitWithTimeout(absl::Condition(this, &EventLoop::HasWork), wait) || wait_us == 0;
  batch.quit = quit_;
  if (quit_) return batch;
  while (!queue_.empty() && batch.items.size() < kMostEvents) {
    // A call is alone in its batch.
    const bool is_call = queue_.front()->is_call();
    if (is_call && !batch.items.empty()) break;
    batch.items.push_back(std::move(queue_.front()));
    queue_.pop_front();
    if (is_call) break;
  }
  return batch;
}

absl::Status EventLoop::Handle(Engine* engine, Batch batch) {
  std::vector<Event> events;
  if (batch.ticks) events.push_back(Tick{});
  for (const std::unique_ptr<Item>& item : batch.items) {
    if (!item->is_call()) events.push_back(item->TakeEvent());
  }
  if (!events.empty()) {
    const absl::Status status = engine->Handle(std::move(events));
    if (!status.ok()) return status;
  }
  for (const std::unique_ptr<Item>& item : batch.items) {
    if (item->is_call()) item->Call();
  }
  return absl::OkStatus();
}

absl::Status EventLoop::Run(Engine* engine) {
  while (true) {
    Batch batch = Pop(engine->NextDeadlineMicros());
    if (batch.quit) return absl::OkStatus();
    const int64_t events = static_cast<int64_t>(batch.items.size()) + (batch.ticks ? 1 : 0);
    // Simulations set clock_, and what an event costs is real time in them too.
    const auto began = std::chrono::steady_clock::now();
    const absl::Status status = Handle(engine, std::move(batch));
    times_.Record(std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count(), events);
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
  std::deque<std::unique_ptr<Item>> dropped;
  absl::MutexLock lock(&mutex_);
  quit_ = true;
  dropped.swap(queue_);
  for (std::unique_ptr<Item>& item : dropped) {
    if (item->is_result()) queue_.push_back(std::move(item));
  }
}

absl::Status EventLoop::HandleResults(Engine* engine) {
  Batch batch;
  {
    absl::MutexLock lock(&mutex_);
    batch.items.swap(queue_);
  }
  return Handle(engine, std::move(batch));
}

}  // namespace terse
