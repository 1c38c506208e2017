// Bounds what one client may ask of the coordinator: calls, calls at a time, bytes (docs/SECURITY.md, "Budgets").
#ifndef TERSE_COORDINATOR_RPC_CLIENT_BUDGETS_H_
#define TERSE_COORDINATOR_RPC_CLIENT_BUDGETS_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/clock.h"

namespace terse {

struct BudgetOptions {
  // A client that connects, sends its update and goes makes one a round, and one more for each file it fetches. That
  // many may come at once after a pause.
  int64_t calls_per_minute = 120;
  int64_t calls_at_once = 16;
  // The bytes of messages and files, both ways, before framing and TLS; as many may come at once after a pause. A
  // client that spends more is served more slowly. 0: no bound.
  int64_t bytes_per_minute = 0;
  // The most sessions among the calls at once: a client has one, and for a while those that it has given up before it.
  int64_t sessions_at_once = 4;
};

// Token buckets for each client, by the name in its certificate: without certificates nobody is known, and there are no
// budgets. A call that is refused is nobody's loss: an update stays in its client's outbox until it comes back. Bytes
// are never refused, only waited for: what was begun always ends, and a client does not pay for connections to try
// again. Holds what is not full or in use. Thread-safe.
class ClientBudgets {
 public:
  // `clock` must outlive this.
  ClientBudgets(const BudgetOptions& options, Clock* clock) : options_(options), clock_(clock) {}

  // Whether the client may make another call, which is then counted: UNAVAILABLE with the budget and the wait.
  absl::Status BeginCall(const std::string& client, bool is_session = false) ABSL_LOCKS_EXCLUDED(mutex_);
  // A call is open, and has ended. UNAVAILABLE, and nothing is open, when others were opened since its BeginCall.
  absl::Status Opened(const std::string& client, bool is_session = false) ABSL_LOCKS_EXCLUDED(mutex_);
  void Ended(const std::string& client, bool is_session = false) ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts bytes that were sent or received. How long to wait until the client may send or get more; zero while it has
  // some left.
  absl::Duration Spend(const std::string& client, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Clients that something is known of.
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Account {
    int64_t updated_us = 0;
    double calls = 0;  // left
    double bytes = 0;
    int64_t open = 0;
    int64_t sessions = 0;  // of these
  };

  // The client's account as of now.
  Account& Find(const std::string& client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Refill(int64_t now_us, Account* account) const;
  // Whether the client may have one more open.
  absl::Status CheckRoom(const Account& account, bool is_session) const;
  // Forgets those that say nothing.
  void Sweep(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BudgetOptions options_;
  Clock* const clock_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Account> accounts_ ABSL_GUARDED_BY(mutex_);
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = 1024;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_CLIENT_BUDGETS_H_
