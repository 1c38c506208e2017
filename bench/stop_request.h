// A command that is told to end by SIGINT or SIGTERM ends between two steps of its work, and says what it has.
#ifndef TERSE_BENCH_STOP_REQUEST_H_
#define TERSE_BENCH_STOP_REQUEST_H_

#include <atomic>

namespace terse {

// Whether the process was told to end, or one of its threads wants the others to. Thread-safe.
std::atomic<bool>& StopRequested();

// From here on both signals set StopRequested.
void StopOnSignals();

}  // namespace terse

#endif  // TERSE_BENCH_STOP_REQUEST_H_
