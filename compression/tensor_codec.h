// The common part of all codecs that code a model tensor by tensor into one bit stream: the checks of sizes and of
// finite numbers, the format byte, the padding, the cursor. A codec adds how the tensors are written (EncodeTensors),
// what that costs (TensorsBits) and how one is read (a TensorReader). Two families build on it: sparse_codec.h and
// quantized_codec.h.
#ifndef TERSE_COMPRESSION_TENSOR_CODEC_H_
#define TERSE_COMPRESSION_TENSOR_CODEC_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/bit_stream.h"
#include "compression/codec.h"
#include "core/layout.h"

namespace terse {

// One tensor of an update. The number to encode is values[i], or values[i] + residual[i] when `residual` is not null.
struct TensorInput {
  int64_t tensor = 0;  // index in the layout; also names the random stream
  absl::Span<const float> values;
  const float* residual = nullptr;  // only for a codec whose AddsResidual() is true
  float* sum = nullptr;             // where values + residual goes then; may be values.data()
  absl::Span<const float> latest;   // EncodeOptions::latest of this tensor; values when the options have none
  CodecKey key;
  double rate = 0;                   // EncodeOptions::rates of this tensor; 0 for the codec's own
  EncodeScratch* scratch = nullptr;  // EncodeOptions::scratch
};

// Reads the tensors of one message, in order. Not thread-safe.
class TensorReader {
 public:
  virtual ~TensorReader() = default;

  // An independent reader at the same place.
  virtual std::unique_ptr<TensorReader> Clone() const = 0;

  // Reads the part of the message before the first tensor; there is none unless this is overridden.
  virtual absl::Status StartMessage(BitReader* stream) { return absl::OkStatus(); }

  // Begins tensor `tensor` at `stream`, which may be moved past its header.
  virtual absl::Status StartTensor(int64_t tensor, BitReader* stream) = 0;

  // As UpdateCursor::Next, with positions and `limit` in the tensor: 0 <= limit <= its size.
  virtual absl::Status Next(int64_t limit, DecodedRun* run) = 0;

  // Called once Next has nothing more below the tensor's size: sets `stream` behind the tensor's last bit, and checks
  // what can only be checked at the end.
  virtual absl::Status FinishTensor(BitReader* stream) = 0;
};

// The error for element `index` of a tensor that is NaN or infinite.
absl::Status NotFiniteError(const TensorSpec& tensor, int64_t index, float value);

class TensorCodec : public Codec {
 public:
  const Layout& layout() const override { return layout_; }
  int64_t MaxMessageBytes() const override { return max_message_bytes_; }
  absl::StatusOr<std::string> Encode(absl::Span<const float> update, const EncodeOptions& options) const override;
  absl::StatusOr<std::string> AddAndEncode(absl::Span<const float> residual, absl::Span<float> delta,
                                           const EncodeOptions& options) const override;
  absl::StatusOr<int64_t> CostBits(absl::Span<const float> update, const EncodeOptions& options) const override;
  absl::StatusOr<std::unique_ptr<UpdateCursor>> Open(absl::string_view message) const override;

 protected:
  // `format_number` is the first byte of every message.
  TensorCodec(const Layout& layout, int format_number) : layout_(layout), format_number_(format_number) {}
  // Call at the end of the constructor: the most bits behind the format byte.
  void SetMaxBits(int64_t bits) { max_message_bytes_ = 1 + (bits + 7) / 8; }

  // Whether EncodeTensors adds a residual itself, in its own pass over the tensor.
  virtual bool AddsResidual() const { return false; }

  // Writes every tensor of the message, in order. INVALID_ARGUMENT from NotFinite for NaN or infinity.
  virtual absl::Status EncodeTensors(absl::Span<const TensorInput> tensors, BitWriter* writer) const = 0;
  // Returns exactly the number of bits that EncodeTensors writes, by formula.
  virtual absl::StatusOr<int64_t> TensorsBits(absl::Span<const TensorInput> tensors) const = 0;
  virtual std::unique_ptr<TensorReader> NewReader() const = 0;

  const TensorSpec& tensor(int64_t index) const { return layout_.tensors()[index]; }
  absl::Status NotFinite(int64_t tensor, int64_t index, float value) const {
    return NotFiniteError(this->tensor(tensor), index, value);
  }
  // Returns NotFinite for the first such element of the input's values, of all or of `size` from `first` on, if there
  // is one.
  absl::Status CheckFinite(const TensorInput& input) const { return CheckFinite(input, 0, input.values.size()); }
  absl::Status CheckFinite(const TensorInput& input, int64_t first, int64_t size) const;

 private:
  absl::StatusOr<std::vector<TensorInput>> Split(absl::Span<const float> update, const EncodeOptions& options) const;
  absl::StatusOr<std::string> EncodeSplit(absl::Span<const TensorInput> tensors) const;

  const Layout layout_;
  const int format_number_;
  int64_t max_message_bytes_ = 0;
};

// Returns how many of these increasing positions are below `limit`. It has no branches, which would be guessed wrong.
int64_t CountBelow(const uint32_t* positions, int64_t count, int64_t limit);

// Returns the error "the message ends inside WHAT; send it whole".
absl::Status TruncatedIn(absl::string_view what);

}  // namespace terse

#endif  // TERSE_COMPRESSION_TENSOR_CODEC_H_
