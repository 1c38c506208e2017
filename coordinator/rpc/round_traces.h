// When each client of the newest rounds got its work, sent its update and heard of it: for traces.
#ifndef TERSE_COORDINATOR_RPC_ROUND_TRACES_H_
#define TERSE_COORDINATOR_RPC_ROUND_TRACES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/clock.h"
#include "core/session_messages.h"

namespace terse {

// One client's part in a round, as its connection saw it; Unix time in microseconds. 0: it has not happened.
struct ClientTrace {
  std::string client;
  int64_t assigned_us = 0;      // its work was queued for it
  int64_t upload_began_us = 0;  // the first piece of its update came
  int64_t received_us = 0;      // the last one did
  int64_t train_us = 0;         // the time that its training took, as it says
  int64_t payload_bytes = 0;
  int64_t verdict_us = 0;  // its verdict was queued for it
  Outcome outcome = Outcome::kPending;
};

// Keeps the newest rounds in memory: some 150 bytes for each client of each. Only an assignment makes an entry, so what
// a client says makes none. Thread-safe.
class RoundTraces {
 public:
  // `rounds` is above 0.
  RoundTraces(int64_t rounds, Clock* clock) : most_rounds_(rounds), clock_(clock) {}

  int64_t most_rounds() const { return most_rounds_; }

  void Assigned(int64_t round, const std::string& client) ABSL_LOCKS_EXCLUDED(mutex_);
  void UploadBegan(int64_t round, const std::string& client) ABSL_LOCKS_EXCLUDED(mutex_);
  void Received(const Update& update, const std::string& client) ABSL_LOCKS_EXCLUDED(mutex_);
  void Decided(int64_t round, const std::string& client, Outcome outcome) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Round {
    std::vector<ClientTrace> clients;  // the slowest first: those that never delivered, then by the end of their upload
    size_t total = 0;                  // clients that were given work, also those beyond `most`
  };
  // At most `most` clients of a round; none of one that is no longer kept.
  Round Get(int64_t round, size_t most) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Clients = std::map<std::string, ClientTrace>;

  // Null unless the client was given that round's work.
  ClientTrace* Find(int64_t round, const std::string& client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t most_rounds_;
  Clock* const clock_;
  mutable absl::Mutex mutex_;
  std::map<int64_t, Clients> rounds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_ROUND_TRACES_H_
