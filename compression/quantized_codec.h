// The common part of all codecs whose messages speak of every element. A tensor is cut into buckets; a bucket is a
// header of floats that its elements share, and one small integer for each element, its symbol. A codec adds only its
// arithmetic: Measure gives the header, Quantize the symbols, Dequantize the values back. Format:
// compression/FORMAT.md, "Quantized messages".
//
// Cost in bits: for each bucket of m elements, 32 * header floats + what the symbol coder takes for m symbols.
#ifndef TERSE_COMPRESSION_QUANTIZED_CODEC_H_
#define TERSE_COMPRESSION_QUANTIZED_CODEC_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/symbol_coder.h"
#include "compression/tensor_codec.h"
#include "core/run_config.h"

namespace terse {

// The format of a codec's messages; the same at both ends.
struct QuantizedFormat {
  int number = 0;         // first byte of the message
  int header_floats = 0;  // of a bucket; at most 2
  int64_t bucket = 0;     // elements of a bucket, the last of a tensor possibly shorter; 0 for the whole tensor
};

// INVALID_ARGUMENT unless spec.bucket >= 0.
absl::Status CheckBucket(const CodecSpec& spec);

// INVALID_ARGUMENT unless low <= spec.bits <= high.
absl::Status CheckBits(const CodecSpec& spec, int64_t low, int64_t high);

class QuantizedCodec : public TensorCodec {
 public:
  CodecTraits traits() const override = 0;  // carries_all, always; `stochastic` makes the base draw numbers

 protected:
  // A bucket's header; only the first header_floats count, the others are 0.
  using Header = std::array<float, 2>;

  QuantizedCodec(const Layout& layout, const QuantizedFormat& format, std::unique_ptr<const SymbolCoder> coder);

  // The header of a bucket of finite values; any header when there are others, which are found when they are quantized.
  virtual Header Measure(absl::Span<const float> bucket) const { return {}; }

  // Writes the symbols of some of the bucket's values: as many as `values` has, at most kSymbolRun. draws[i] is the
  // random word of values[i]; null unless traits().stochastic.
  virtual void Quantize(const Header& header, absl::Span<const float> values, const uint32_t* draws,
                        uint32_t* symbols) const = 0;

  // Whether Measure can give this header. By default: all its floats are finite and have no sign, not even a zero's.
  virtual bool GoodHeader(const Header& header) const;

  // The values of some symbols under a good header; all finite. False when Quantize writes no such symbol.
  virtual bool Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const = 0;

  // Whether a bucket with this header can have symbols with this bitwise or (`any`) and bitwise and (`all`). What
  // decodes to the same values must not have two encodings. Not asked where there is no header.
  virtual bool GoodBucket(const Header& header, uint32_t any, uint32_t all) const { return true; }

 private:
  class Reader;

  absl::Status EncodeTensors(absl::Span<const TensorInput> tensors, BitWriter* writer) const override;
  absl::StatusOr<int64_t> TensorsBits(absl::Span<const TensorInput> tensors) const override;
  std::unique_ptr<TensorReader> NewReader() const override;

  // Elements of the bucket that begins at `first` in a tensor of `size`.
  int64_t BucketSize(int64_t first, int64_t size) const;
  int64_t MaxTensorBits(int64_t size) const;
  absl::StatusOr<int64_t> BucketBits(const TensorInput& input, int64_t first, std::vector<uint32_t>* symbols) const;
  absl::Status PutBucket(const TensorInput& input, int64_t first, std::vector<uint32_t>* symbols,
                         BitWriter* writer) const;
  // Fills `symbols` with those of elements first, first + 1, ... of the input. INVALID_ARGUMENT from NotFinite.
  absl::Status Symbols(const TensorInput& input, const Header& header, int64_t first,
                       absl::Span<uint32_t> symbols) const;

  const QuantizedFormat format_;
  const std::unique_ptr<const SymbolCoder> coder_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_QUANTIZED_CODEC_H_
