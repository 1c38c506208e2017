// Coders of symbols: the forms in which a quantizer's small integers, one an element, travel. One coder, one file pair:
// here the plain one; base_three.h and elias_omega.h hold the others.
#ifndef TERSE_COMPRESSION_SYMBOL_CODER_H_
#define TERSE_COMPRESSION_SYMBOL_CODER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compression/bit_stream.h"
#include "compression/codec.h"

namespace terse {

// Symbols at a time, where a bucket has so many: whole words of any width, whole groups of five, whole blocks of draws.
constexpr int64_t kSymbolRun = 480;
static_assert(kSymbolRun <= kDecodedRun && kSymbolRun % (32 * 5) == 0, "runs of symbols end between words");

// Reads the symbols of buckets back, one bucket after the other, each a run at a time. Not thread-safe.
class SymbolReader {
 public:
  virtual ~SymbolReader() = default;

  // An independent reader at the same place.
  virtual std::unique_ptr<SymbolReader> Clone() const = 0;

  // Begins a bucket of `count` >= 1 symbols at `stream`, which is moved past its header if it has one. INVALID_ARGUMENT
  // when it ends there.
  virtual absl::Status Start(int64_t count, BitReader* stream) { return absl::OkStatus(); }

  // The next symbols of the bucket: kSymbolRun of them, or what is left if that is less. INVALID_ARGUMENT when the bits
  // end early or no coder could have made them.
  virtual absl::Status Next(absl::Span<uint32_t> symbols, BitReader* stream) = 0;

  // Called once all symbols of the bucket are read. INVALID_ARGUMENT when the coder would have written them otherwise.
  virtual absl::Status Finish() { return absl::OkStatus(); }
};

// Immutable and safe to share between threads. Integer arithmetic only.
class SymbolCoder {
 public:
  virtual ~SymbolCoder() = default;

  // Whether the bits of a bucket depend on the number of its symbols only. Then Put may be given a bucket in runs of
  // kSymbolRun, the last one shorter; otherwise it needs all of it.
  virtual bool fixed_length() const = 0;

  // The most bits of any `count` symbols; the bits of every such bucket if fixed_length().
  virtual int64_t MaxBits(int64_t count) const = 0;

  // Returns the bits of this bucket.
  virtual int64_t Bits(absl::Span<const uint32_t> symbols) const { return MaxBits(symbols.size()); }

  virtual void Put(absl::Span<const uint32_t> symbols, BitWriter* writer) const = 0;

  virtual std::unique_ptr<SymbolReader> NewReader() const = 0;
};

// Every symbol in `width` bits, 1 <= width <= 32: count * width bits.
std::unique_ptr<const SymbolCoder> NewFixedWidthCoder(int width);

}  // namespace terse

#endif  // TERSE_COMPRESSION_SYMBOL_CODER_H_
