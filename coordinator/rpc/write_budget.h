// Bounds the memory that the messages take which are being written to clients.
#ifndef TERSE_COORDINATOR_RPC_WRITE_BUDGET_H_
#define TERSE_COORDINATOR_RPC_WRITE_BUDGET_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "proto/session_wire.h"

namespace terse {

// One for the process. A message that waits is a reference that sessions share (outbox.h); what gRPC is given to write
// is a copy for each client, until the connection has taken it. While the budget lasts, a write has a whole chunk
// (kChunkBytes). Beyond that it has kAlwaysBytes: many clients at once, or some that read slowly, make the writes of
// all smaller, and nobody waits for another client. Thread-safe.
class WriteBudget {
 public:
  // The sum of all writes above kAlwaysBytes.
  static constexpr int64_t kMostBytes = int64_t{4} << 20;
  // Every client may have so much in writing beside the budget.
  static constexpr int64_t kAlwaysBytes = int64_t{16} << 10;

  // The bytes that one write may have; what it holds of the budget goes back with it. Movable.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      GiveBack();
      budget_ = other.budget_;
      bytes_ = std::exchange(other.bytes_, 0);
      held_ = std::exchange(other.held_, 0);
      return *this;
    }
    ~Share() { GiveBack(); }
    int64_t bytes() const { return bytes_; }

   private:
    friend class WriteBudget;
    Share(WriteBudget* budget, int64_t bytes, int64_t held) : budget_(budget), bytes_(bytes), held_(held) {}
    void GiveBack() {
      if (held_ > 0) budget_->left_ += held_;
    }

    WriteBudget* budget_ = nullptr;
    int64_t bytes_ = 0;
    int64_t held_ = 0;  // of the budget, which outlives it
  };

  // For a write of up to `wanted` bytes.
  Share Take(int64_t wanted) {
    const int64_t bytes = std::min(wanted, kChunkBytes);
    if (bytes <= kAlwaysBytes) return Share(this, bytes, 0);
    if (left_.fetch_sub(bytes) >= bytes) return Share(this, bytes, bytes);
    left_ += bytes;
    return Share(this, kAlwaysBytes, 0);
  }

  int64_t left() const { return left_; }

 private:
  std::atomic<int64_t> left_{kMostBytes};
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_WRITE_BUDGET_H_
