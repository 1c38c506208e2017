// Coders of positions: which k of a tensor's n elements a sparse message carries. One coder, one file pair; the table
// is position_coder_table.h. Formats: compression/FORMAT.md.
#ifndef TERSE_COMPRESSION_POSITION_CODER_H_
#define TERSE_COMPRESSION_POSITION_CODER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/bit_stream.h"

namespace terse {

// Reads the positions of one tensor back, a run at a time. Not thread-safe; the stream's bytes must outlive it.
class PositionReader {
 public:
  virtual ~PositionReader() = default;

  // An independent reader at the same place.
  virtual std::unique_ptr<PositionReader> Clone() const = 0;

  // Fills `positions` with the next positions, increasing. The caller never asks for more than there are. On
  // INVALID_ARGUMENT (the bytes could not have been written by Put: truncated, a position past the tensor, a form that
  // the coder does not choose) the contents are unspecified and the reader is of no further use.
  virtual absl::Status Next(absl::Span<uint32_t> positions) = 0;

  // The stream behind the tensor's last bit. Call it once, after all positions were read. INVALID_ARGUMENT when what
  // was read could not have been written by Put, for coders that only see that at the end.
  virtual absl::StatusOr<BitReader> Finish() = 0;
};

// Immutable and safe to share between threads. Integer arithmetic only, so that the same positions give the same bits
// on every machine. In all methods 1 <= count <= size < 2^31, and positions are strictly increasing below `size`.
class PositionCoder {
 public:
  virtual ~PositionCoder() = default;

  // The row of the position coder table.
  virtual absl::string_view name() const = 0;

  // Returns exactly the number of bits that Put writes, without writing them.
  virtual int64_t Bits(absl::Span<const uint32_t> positions, int64_t size) const = 0;

  // The most bits that any 1..count positions below `size` take.
  virtual int64_t MaxBits(int64_t count, int64_t size) const = 0;

  // Appends the positions. The count is not written: the reader is told.
  virtual void Put(absl::Span<const uint32_t> positions, int64_t size, BitWriter* writer) const = 0;

  // A reader of `count` positions at the first bit of `stream`. INVALID_ARGUMENT when a header is malformed or the
  // stream is too short for what is known to follow. Memory and time are bounded by `count` and the stream's length.
  virtual absl::StatusOr<std::unique_ptr<PositionReader>> Open(int64_t count, int64_t size,
                                                               const BitReader& stream) const = 0;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_POSITION_CODER_H_
