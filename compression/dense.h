// The codec that leaves nothing out: every element as a little-endian float32. It is the baseline that compression is
// measured against, and the reference that lossy codecs are tested against.
#ifndef TERSE_COMPRESSION_DENSE_H_
#define TERSE_COMPRESSION_DENSE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/bit_stream.h"
#include "compression/codec.h"
#include "compression/quantized_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// Appends the values, 4 bytes each, least significant byte first.
void AppendFloats(absl::Span<const float> values, std::string* bytes);

// Returns OK when `bytes` holds layout.size() such values, all finite. INVALID_ARGUMENT otherwise, naming tensor and
// index of the first that is not.
absl::Status CheckFloats(const Layout& layout, absl::string_view bytes);

// Returns value i of checked bytes.
inline float FloatAt(absl::string_view bytes, int64_t i) { return FloatFromBits(LoadLittle32(bytes.data() + 4 * i)); }

// The tensor and the index in it of flat element i, for errors: "tensor 'fc1.bias', index 3".
std::string DescribeElement(const Layout& layout, int64_t i);

// The contract is Codec's. Format number 0x01. One symbol of 32 bits an element, the float itself; no header. Lossless,
// deterministic, -0 and denormals included. Cost: 32 * n bits, so every message has 1 + 4 * n bytes.
class DenseCodec : public QuantizedCodec {
 public:
  // Never fails; `spec`'s parameters are those of other codecs.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return "dense"; }
  CodecTraits traits() const override;

 private:
  explicit DenseCodec(const Layout& layout);

  void Quantize(const Header& header, absl::Span<const float> values, const uint32_t* draws,
                uint32_t* symbols) const override;
  bool Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const override;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_DENSE_H_
