// The run-length code of quantized gradients: Mordido, Van Keirsbilck, Keller, "Monte Carlo Gradient Quantization"
// (CVPR workshops 2020), section 3.4. A tensor of integers is
//
//   B_g      32 bits: 1 + floor(log2(max |level|) + 1), the bits of a signed level; 1 where all are zero
//   B_RLE    32 bits: floor(log2(c_0) + 1) for the longest run of zeros c_0; 0 where there are no zeros
//   tokens   a level that is not zero: B_g bits, two's complement; a run of zeros: B_g zero bits, then its length in
//            B_RLE bits
//
// Example, the paper's: {2, -1, 0, 0, 0, 3, 0, 1} has B_g = 3, B_RLE = 2 and 22 bits of tokens, 86 bits in all.
#ifndef TERSE_COMPRESSION_MCGQ_RLE_H_
#define TERSE_COMPRESSION_MCGQ_RLE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compression/bit_stream.h"

namespace terse {

// The integers of one tensor that are not zero.
struct SparseLevels {
  std::vector<uint32_t> positions;  // increasing
  std::vector<uint32_t> levels;     // one a position: SignedLevel of signed_level.h
};

// Returns exactly the number of bits that PutRle writes, both headers included. 1 <= size < 2^31, above all positions.
int64_t RleBits(const SparseLevels& tensor, int64_t size);

void PutRle(const SparseLevels& tensor, int64_t size, BitWriter* writer);

// Reads such a tensor in pieces. Not thread-safe; copies are independent readers. The stream's bytes must outlive it.
class RleReader {
 public:
  // Reads both headers at `stream`. INVALID_ARGUMENT when they are out of range or the stream ends.
  absl::Status Start(int64_t size, const BitReader& stream);

  // Reads the next levels that are not zero, at most positions.size() = levels.size() of them, and sets *count; 0 after
  // the last. INVALID_ARGUMENT for tokens that PutRle does not write: past the tensor's end, an empty run, two runs in
  // a row, and, seen after the last token, headers that a shorter one would have served.
  absl::Status Next(absl::Span<uint32_t> positions, absl::Span<uint32_t> levels, int64_t* count);

  // The stream behind the last token, once Next has set a count of 0.
  const BitReader& stream() const { return stream_; }

 private:
  // The error for a run that ends at bit `end` of the stream, or would.
  absl::Status RefuseRun(uint64_t end, uint64_t zeros, int64_t at) const;
  absl::Status CheckWidths() const;

  BitReader stream_;
  int64_t size_ = 0;
  int64_t at_ = 0;  // elements read
  int level_bits_ = 0;
  int run_bits_ = 0;
  bool after_run_ = false;
  uint32_t largest_level_ = 0;  // magnitude
  uint32_t longest_run_ = 0;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_MCGQ_RLE_H_
