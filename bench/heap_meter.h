// Counts what operator new has handed out, in the whole program: heap_meter.cc replaces it.
#ifndef TERSE_BENCH_HEAP_METER_H_
#define TERSE_BENCH_HEAP_METER_H_

#include <cstdint>

namespace terse {

// Bytes that are in use now.
int64_t HeapBytes();

// The most that were in use at one time since the last ResetHeapPeak.
int64_t HeapPeakBytes();
void ResetHeapPeak();

}  // namespace terse

#endif  // TERSE_BENCH_HEAP_METER_H_
