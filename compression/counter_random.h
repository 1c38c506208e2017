// Random numbers by counter: draw i of a stream is a pure function of (key, tensor, i), so stochastic codecs give the
// same bytes in any order and on any number of threads. Philox4x32-10 of Salmon, Moraes, Dror, Shaw, "Parallel Random
// Numbers: As Easy as 1, 2, 3" (2011). Not for secrets.
#ifndef TERSE_COMPRESSION_COUNTER_RANDOM_H_
#define TERSE_COMPRESSION_COUNTER_RANDOM_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "compression/codec.h"

namespace terse {

// The draws for one tensor of one encoding. The generator's key is the run; a counter holds, in its four words, the
// number of the block, the tensor, and 64 bits that mix round and client (SplitMix64). Immutable, safe to share.
class CounterRandom {
 public:
  CounterRandom(const CodecKey& key, int64_t tensor);

  // Fills `words` with the draws first, first + 1, ... of the stream; 0 <= first.
  void Fill(int64_t first, absl::Span<uint32_t> words) const;

  // Returns draw `index` alone.
  uint32_t At(int64_t index) const;

 private:
  std::array<uint32_t, 4> CounterOf(int64_t block) const;

  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
};

// A draw as a number in [0, 1) with 32 bits.
inline double UniformDouble(uint32_t word) { return static_cast<double>(word) * 0x1.0p-32; }

}  // namespace terse

#endif  // TERSE_COMPRESSION_COUNTER_RANDOM_H_
