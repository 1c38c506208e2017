// 1-bit SGD: Seide, Fu, Droppo, Li, Yu, "1-Bit Stochastic Gradient Descent and Application to Data-Parallel Distributed
// Training of Speech DNNs" (Interspeech 2014), section 3: one bit an element, quantized at 0, and two values that bits
// stand for, the mean of the elements that are not negative and the mean of those that are, which leaves the least
// squared error. Error feedback is part of the method.
//
// Readings: the paper shares the two values along a column of a weight matrix; here a bucket shares them, the whole
// tensor with bucket = 0. Zero, of either sign, is not negative. Means are taken in double (LaneSum of exact_math.h
// over the elements of one side, the others counting 0; divided by their number) and rounded to float32; a side without
// elements has 0.
//
// Settings: bucket. Deterministic, biased, not lossless, but exact for tensors of at most one value a side. Cost: 64 +
// n bits a bucket of n elements.
//
// Example: {1, -2, 3, 0}: the means are 4/3 and -2, and {4/3, -2, 4/3, 4/3} is decoded.
#ifndef TERSE_COMPRESSION_ONE_BIT_H_
#define TERSE_COMPRESSION_ONE_BIT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/quantized_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// The contract is Codec's. Format number 0x13.
class OneBitCodec : public QuantizedCodec {
 public:
  // INVALID_ARGUMENT for a negative bucket.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return "one_bit"; }
  CodecTraits traits() const override;

 private:
  OneBitCodec(const Layout& layout, const CodecSpec& spec);

  // The header is the value of symbol 0 (not negative) and the one of symbol 1 (negative).
  Header Measure(absl::Span<const float> bucket) const override;
  void Quantize(const Header& header, absl::Span<const float> values, const uint32_t* draws,
                uint32_t* symbols) const override;
  bool GoodHeader(const Header& header) const override;
  bool Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const override;
  bool GoodBucket(const Header& header, uint32_t any, uint32_t all) const override;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_ONE_BIT_H_
