// The position coder of Sparse Binary Compression (Sattler et al. 2018, Algorithms 3 and 4, equation (5)): Golomb-Rice
// codes of the gaps between positions. Here the code is split in two streams: all quotients as one unary bitmap, read
// with count-trailing-zeros, and all remainders at a fixed width. The number of bits is that of Algorithm 3.
//
// For 0-based positions i_1 < i_2 < ... and i_0 = -1: d = i_j - i_{j-1}, q = (d - 1) div 2^b, r = (d - 1) mod 2^b.
// The bitmap holds q zeros and a one, the remainder stream the b bits of r, least significant first.
#ifndef TERSE_COMPRESSION_RICE_H_
#define TERSE_COMPRESSION_RICE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compression/bit_stream.h"

namespace terse {

// b* = max(0, 1 + floor(log2(log(phi - 1) / log(1 - p)))) for p = count / size, by integer comparison, so that both
// ends agree on every machine. 1 <= count <= size < 2^31; the result is at most 30. Example: (1, 100) gives 6.
int RiceParameter(int64_t count, int64_t size);

// The most bits that `count` positions below `size`, or any smaller number of them, take: remainders and quotients.
int64_t RiceMaxBits(int64_t count, int64_t size);

// Appends the remainders, respectively the quotients, of a tensor's increasing positions.
void PutRiceRemainders(absl::Span<const uint32_t> positions, int parameter, BitWriter* writer);
void PutRiceQuotients(absl::Span<const uint32_t> positions, int parameter, BitWriter* writer);

// Reads positions back, a chunk at a time. Not thread-safe.
class RiceDecoder {
 public:
  // Both readers at the first bit of their stream. The caller has checked that the remainders are all there, and that
  // there are fewer than 2^33 bits in all, so that no position overflows.
  RiceDecoder(BitReader remainders, BitReader quotients) : remainders_(remainders), quotients_(quotients) {}

  // What follows are positions in [base, base + size), coded with `parameter`.
  void StartTensor(uint32_t base, int64_t size, int parameter);

  // Fills `positions`. INVALID_ARGUMENT when a position falls outside the tensor or the bitmap ends early; `positions`
  // is unspecified then.
  absl::Status Next(absl::Span<uint32_t> positions);

  // INVALID_ARGUMENT unless only the padding of the last byte is left behind the bitmap.
  absl::Status Finish() const;

 private:
  BitReader remainders_;
  BitReader quotients_;
  uint64_t next_ = 0;  // the lowest position that may come next
  uint64_t end_ = 0;   // one past the tensor's last position
  int parameter_ = 0;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_RICE_H_
