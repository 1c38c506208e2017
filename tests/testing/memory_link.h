// One connection between a client and the coordinator inside a process. Nothing moves by itself: a scheduler takes what
// the client sent and hands over what the coordinator sent, message by message, and may cut the connection anywhere.
#ifndef TERSE_TESTS_TESTING_MEMORY_LINK_H_
#define TERSE_TESTS_TESTING_MEMORY_LINK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "client/coordinator_link.h"
#include "coordinator/client_link.h"

namespace terse {

// Stand-ins for bytes on the wire: payload and a fixed envelope.
int64_t PretendWireBytes(const FromClient& message);
int64_t PretendWireBytes(const FromServer& message);

// Both ends of the link. Thread-safe. The client's thread blocks only in Receive; WaitUntilIdle tells the scheduler
// that it does, so client and scheduler never run at once and every run is deterministic.
class MemoryLink {
 public:
  using Download = std::function<absl::StatusOr<std::string>(Id128 lineage, int64_t version)>;

  // `download` answers DownloadCheckpoint, in the client's thread.
  explicit MemoryLink(Download download) : download_(std::move(download)), client_end_(this), coordinator_end_(this) {}

  CoordinatorLink* client_end() { return &client_end_; }
  ClientLink* coordinator_end() { return &coordinator_end_; }

  // Waits until the client waits for a message that has not been delivered, or has left.
  void WaitUntilIdle();
  // The client's thread calls it when its session ends.
  void ClientLeft();
  bool client_left();

  // The oldest message that is under way to the coordinator; nullopt when there is none.
  absl::optional<FromClient> TakeUp();
  // The next Update that is taken stays under way as well, and comes a second time.
  void DuplicateNextUpdate();
  // Hands the oldest message under way to the client, and returns it; nullopt when there is none.
  absl::optional<FromServer> DeliverDown();
  int64_t up_waiting();
  int64_t down_waiting();

  // The connection breaks. Of the messages under way to the coordinator the first `up_survivors` still arrive.
  void Cut(int64_t up_survivors);
  // It breaks by itself at the client's `sends`-th Send from now on; that message arrives or not as `arrives` says.
  void CutAtSend(int64_t sends, bool arrives);
  bool cut();

 private:
  class ClientEnd : public CoordinatorLink {
   public:
    explicit ClientEnd(MemoryLink* link) : link_(link) {}
    absl::Status Send(const FromClient& message) override { return link_->SendUp(message); }
    absl::StatusOr<FromServer> Receive() override { return link_->Receive(); }
    void SetMaxDeltaBytes(int64_t bytes) override { link_->max_delta_bytes_ = bytes; }
    absl::StatusOr<std::string> DownloadCheckpoint(Id128 lineage, int64_t version, int64_t max_bytes) override;

   private:
    MemoryLink* const link_;
  };
  class CoordinatorEnd : public ClientLink {
   public:
    explicit CoordinatorEnd(MemoryLink* link) : link_(link) {}
    void Send(FromServer message) override { link_->SendDown(std::move(message), /*now=*/true); }
    // Stays with the coordinator until something makes it travel: a Flush that is missing shows as a standstill.
    void SendLater(FromServer message) override { link_->SendDown(std::move(message), /*now=*/false); }
    void Flush() override;
    WireBytes Wire() override;

   private:
    MemoryLink* const link_;
  };

  absl::Status SendUp(const FromClient& message) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<FromServer> Receive() ABSL_LOCKS_EXCLUDED(mutex_);
  void SendDown(FromServer message, bool now) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReleaseLater() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Break(int64_t up_survivors) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasInput() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !inbox_.empty() || cut_; }
  bool Idle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return left_ || (receiving_ && !HasInput()); }

  const Download download_;
  ClientEnd client_end_;
  CoordinatorEnd coordinator_end_;
  int64_t max_delta_bytes_ = 0;  // client's thread only

  absl::Mutex mutex_;
  std::deque<FromClient> up_ ABSL_GUARDED_BY(mutex_);
  std::deque<FromServer> later_ ABSL_GUARDED_BY(mutex_);
  std::deque<FromServer> down_ ABSL_GUARDED_BY(mutex_);
  std::deque<FromServer> inbox_ ABSL_GUARDED_BY(mutex_);
  bool receiving_ ABSL_GUARDED_BY(mutex_) = false;
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;
  bool duplicate_next_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t sends_until_cut_ ABSL_GUARDED_BY(mutex_) = -1;
  bool last_send_arrives_ ABSL_GUARDED_BY(mutex_) = false;
  WireBytes wire_ ABSL_GUARDED_BY(mutex_);  // the coordinator's view
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_MEMORY_LINK_H_
