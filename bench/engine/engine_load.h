// A run of many sessions through the coordinator's engine and its store, in one thread: the cost of an event without
// connections.
#ifndef TERSE_BENCH_ENGINE_ENGINE_LOAD_H_
#define TERSE_BENCH_ENGINE_ENGINE_LOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace terse {

struct EngineLoadOptions {
  int64_t sessions = 0;
  int64_t rounds = 5;
  int64_t inputs = 28;  // of a perceptron, which has 100 weights for each and 1,110 numbers more
  double density = 0.01;
  std::string directory;                // of the store; on a real disk, and there is nothing in it yet
  std::function<int64_t()> sync_count;  // calls of fsync and fdatasync of this process so far; empty: nobody counts
};

// A part of a run: the engine's time for it, that of the store and its syncs included, that of the clients not.
struct EngineSpan {
  int64_t events = 0;
  int64_t batches = 0;         // each of them is one transaction at most
  int64_t syncs = 0;           // 0 where nobody counts
  double seconds = 0;          // of wall time
  double longest_seconds = 0;  // of wall time, of one batch
  double processor_seconds = 0;

  double us_an_event() const { return 1e6 * processor_seconds / static_cast<double>(events); }
};

struct EngineFigures {
  int64_t parameters = 0;
  EngineSpan joining;              // from the first connection to the first round's assignments
  std::vector<EngineSpan> rounds;  // each from its first update to its commit and the next round's assignments
  EngineSpan leaving;              // from the last commit until everybody is gone
  int64_t base_kib = 0;            // resident before the first connection
  int64_t peak_kib = 0;
  int64_t database_bytes = 0;

  double kib_a_session(int64_t sessions) const {
    return static_cast<double>(peak_kib - base_kib) / static_cast<double>(sessions);
  }
};

// Plays the run: every client takes part in every round, with the product's defaults otherwise. Batches are those of
// EventLoop, up to EventLoop::kMostEvents of the events that wait. The process's peak of resident memory is counted
// anew.
//
// INTERNAL unless all went right: every round was committed with everybody's update; every client was given the work
// of every round and heard its receipt, its verdict and the new model; the ledger has the bytes of what was sent, for
// every client; and the head's hash is that of the weights to which the downstream messages lead, and the average of
// the updates. Statuses of the store and of the engine.
absl::StatusOr<EngineFigures> RunEngineLoad(const EngineLoadOptions& options);

}  // namespace terse

#endif  // TERSE_BENCH_ENGINE_ENGINE_LOAD_H_
