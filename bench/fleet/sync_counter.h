// The count of a process's syncs, kept where another process reads it.
#ifndef TERSE_BENCH_FLEET_SYNC_COUNTER_H_
#define TERSE_BENCH_FLEET_SYNC_COUNTER_H_

#include <atomic>
#include <cstdint>

namespace terse {

// Names the file whose first bytes are a SyncCount, which the preloaded library counts in.
inline constexpr char kSyncCountVariable[] = "TERSE_COUNT_SYNCS";
// Next to terse-bench.
inline constexpr char kSyncCounterLibrary[] = "libterse_sync_counter.so";

using SyncCount = std::atomic<int64_t>;
static_assert(SyncCount::is_always_lock_free, "it is shared by two processes");

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_SYNC_COUNTER_H_
