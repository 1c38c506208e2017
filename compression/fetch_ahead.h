// Fetching ahead of a pass over main memory that works run by run, with other work in between: the processor's own
// prefetching does not keep up with such bursts.
#ifndef TERSE_COMPRESSION_FETCH_AHEAD_H_
#define TERSE_COMPRESSION_FETCH_AHEAD_H_

#include <cstdint>

namespace terse {

// How many bytes ahead: about four runs of floats.
constexpr int64_t kFetchAhead = 8192;
// The same for each of two arrays that are read together.
constexpr int64_t kFetchAheadOfTwo = 2048;

// Starts to fetch the cache lines of the `bytes` bytes that lie `ahead` behind `at`. That these may lie behind the end
// of an array, or nowhere, does no harm: nothing is read.
inline void FetchAheadToRead(const void* at, int64_t bytes, int64_t ahead = kFetchAhead) {
  const char* const from = static_cast<const char*>(at) + ahead;
  for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(from + line, 0);
}

// The same for memory that will be written.
inline void FetchAheadToWrite(const void* at, int64_t bytes) {
  const char* const from = static_cast<const char*>(at) + kFetchAhead;
  for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(from + line, 1);
}

}  // namespace terse

#endif  // TERSE_COMPRESSION_FETCH_AHEAD_H_
