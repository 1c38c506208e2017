// The interface of every compressor of weight updates. A codec turns the accumulated update of one client (delta plus
// residual, flat float32 in the order of the model's Layout) into a message and back. Formats: compression/FORMAT.md.
#ifndef TERSE_COMPRESSION_CODEC_H_
#define TERSE_COMPRESSION_CODEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "core/layout.h"

namespace terse {

// Immutable after construction and safe to share between threads. Deterministic: the same input gives the same bytes on
// every machine. A decoder takes every size from its own layout, never from the message.
class Codec {
 public:
  virtual ~Codec() = default;

  // The row of the codec table, for logs and errors.
  virtual absl::string_view name() const = 0;
  virtual const Layout& layout() const = 0;

  // An upper bound of the bytes of any message this codec makes or accepts.
  virtual int64_t MaxMessageBytes() const = 0;

  // Encodes `update` (layout().size() elements). INVALID_ARGUMENT naming tensor and index for NaN or infinity.
  virtual absl::StatusOr<std::string> Encode(absl::Span<const float> update) const = 0;

  // Decodes without writing anywhere: OK exactly when AddDecoded would succeed. INVALID_ARGUMENT with the tensor and
  // the reason for bytes that Encode could not have made (truncated, trailing bytes, position out of range, NaN or
  // infinity).
  virtual absl::Status Validate(absl::string_view message) const = 0;

  // accumulator[i] += sign * decoded[i], once per element that the message names, in increasing i. `sign` is +1 or -1.
  // On error the accumulator may be partly changed, so callers validate first.
  virtual absl::Status AddDecoded(absl::string_view message, float sign, absl::Span<float> accumulator) const = 0;

  // The flat positions that the message carries, increasing; nullopt when it carries all of them (dense).
  virtual absl::StatusOr<absl::optional<std::vector<uint32_t>>> SentPositions(absl::string_view message) const = 0;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_CODEC_H_
