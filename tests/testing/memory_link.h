// One connection between a client and the coordinator inside a process. Nothing moves by itself: a scheduler takes what
// the client sent and hands over what the coordinator sent, message by message, and may cut the connection anywhere.
#ifndef TERSE_TESTS_TESTING_MEMORY_LINK_H_
#define TERSE_TESTS_TESTING_MEMORY_LINK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "client/coordinator_link.h"
#include "coordinator/client_link.h"

namespace terse {

// Stand-ins for bytes on the wire: payload and a fixed envelope.
int64_t PretendWireBytes(const FromClient& message);
int64_t PretendWireBytes(const FromServer& message);

// Both ends of the link, used from one thread: a client that has to wait gives control back to the scheduler.
class MemoryLink {
 public:
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

  using Download = std::function<absl::StatusOr<std::string>(Id128 lineage, int64_t version)>;

  // `download` answers DownloadCheckpoint. `wait` is called in Receive until there is something to receive.
  MemoryLink(Download download, std::function<void()> wait)
      : download_(std::move(download)), wait_(std::move(wait)), client_end_(this), coordinator_end_(this) {}

  CoordinatorLink* client_end() { return &client_end_; }
  ClientLink* coordinator_end() { return &coordinator_end_; }

  // The oldest message that is under way to the coordinator; nullopt when there is none.
  absl::optional<FromClient> TakeUp();
  // The next Update that is taken stays under way as well, and comes a second time.
  void DuplicateNextUpdate() { duplicate_next_ = true; }
  // Hands the oldest message under way to the client, which must then get control, and returns it; nullopt when there
  // is none.
  absl::optional<FromServer> DeliverDown();
  // Whether the coordinator asked to hear that what it sent has left, and it has; once.
  bool TakeDrained();
  int64_t up_waiting() const { return static_cast<int64_t>(up_.size()); }
  int64_t down_waiting() const { return static_cast<int64_t>(down_.size()); }

  // The connection breaks; the client must then get control. The first `up_survivors` messages under way still reach
  // the coordinator, and the first `down_survivors` the client.
  void Cut(int64_t up_survivors, int64_t down_survivors = 0);
  // It breaks by itself at the client's `sends`-th Send from now on; that message arrives or not as `arrives` says.
  void CutAtSend(int64_t sends, bool arrives);
  bool cut() const { return cut_; }
  // Returns the index of the link's client, as the coordinator welcomed it; -1 before.
  int64_t client() const { return client_; }
  // The client's process is gone: it hears nothing more. Its messages are still under way.
  void EndClient();
  // The coordinator's process is gone: it sends nothing more. Its messages are still under way.
  void SilenceCoordinator();

 private:
  class ClientEnd : public CoordinatorLink {
   public:
    explicit ClientEnd(MemoryLink* link) : link_(link) {}
    absl::Status Send(const FromClient& message) override { return link_->SendUp(message); }
    absl::StatusOr<FromServer> Receive() override { return link_->Receive(); }
    void SetMaxDownstreamBytes(int64_t bytes) override {}
    absl::StatusOr<std::string> DownloadCheckpoint(Id128 lineage, int64_t version, int64_t max_bytes) override;
    absl::StatusOr<std::string> DownloadModule(Id128, int64_t) override {
      return absl::NotFoundError("the runs here have no TorchScript file");
    }

   private:
    MemoryLink* const link_;
  };
  class CoordinatorEnd : public ClientLink {
   public:
    explicit CoordinatorEnd(MemoryLink* link) : link_(link) {}
    // Messages that may wait stay with the coordinator until something else makes them travel: one that must not wait,
    // and does, shows as a standstill.
    void Send(ToClient words) override { link_->SendDown(std::move(words)); }
    int64_t WaitingBytes() override { return link_->WaitingBytes(); }
    WireBytes Wire() override { return link_->wire_; }

   private:
    MemoryLink* const link_;
  };

  absl::Status SendUp(const FromClient& message);
  absl::StatusOr<FromServer> Receive();
  void SendDown(ToClient words);
  int64_t WaitingBytes() const;

  const Download download_;
  const std::function<void()> wait_;
  ClientEnd client_end_;
  CoordinatorEnd coordinator_end_;

  std::deque<FromClient> up_;
  std::deque<FromServer> later_;
  std::deque<FromServer> down_;
  std::deque<FromServer> inbox_;
  bool tell_when_drained_ = false;
  bool cut_ = false;
  int64_t client_ = -1;
  bool silent_ = false;  // the coordinator has said its last word
  bool duplicate_next_ = false;
  int64_t sends_until_cut_ = -1;
  bool last_send_arrives_ = false;
  WireBytes wire_;  // the coordinator's view
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_MEMORY_LINK_H_
