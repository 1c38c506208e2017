#include "compression/tensor_codec.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/select_kernels.h"
#include "core/status.h"

namespace terse {
namespace {

class TensorCursor : public UpdateCursor {
 public:
  TensorCursor(const Codec* codec, BitReader stream, std::unique_ptr<TensorReader> reader)
      : codec_(codec), stream_(stream), reader_(std::move(reader)) {}

  std::unique_ptr<UpdateCursor> Clone() const override {
    auto clone = std::make_unique<TensorCursor>(codec_, stream_, reader_->Clone());
    clone->tensor_ = tensor_;
    clone->started_ = started_;
    return clone;
  }

  absl::Status Start() { return Annotate(reader_->StartMessage(&stream_), absl::StrCat(codec_->name(), " message")); }

  absl::Status Next(int64_t limit, DecodedRun* run) override {
    run->count = 0;
    const absl::Span<const TensorSpec> tensors = codec_->layout().tensors();
    while (tensor_ < tensors.size() && tensors[tensor_].offset < limit) {
      const absl::Status status = NextOfTensor(tensors[tensor_], limit, run);
      if (!status.ok()) {
        return Annotate(status, absl::StrCat(codec_->name(), " message, tensor '", tensors[tensor_].name, "'"));
      }
      if (run->count > 0 || started_) return absl::OkStatus();
    }
    if (tensor_ < tensors.size() || stream_.AtPaddedEnd()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        codec_->name(), " message with bits behind its last element; a message ends with its last tensor"));
  }

 private:
  // Leaves `started_` false when the tensor is done.
  absl::Status NextOfTensor(const TensorSpec& tensor, int64_t limit, DecodedRun* run) {
    if (!started_) TERSE_RETURN_IF_ERROR(reader_->StartTensor(static_cast<int64_t>(tensor_), &stream_));
    started_ = true;
    TERSE_RETURN_IF_ERROR(reader_->Next(std::min(limit - tensor.offset, tensor.size), run));
    run->begin += tensor.offset;
    if (run->count == 0 && limit - tensor.offset >= tensor.size) {
      TERSE_RETURN_IF_ERROR(reader_->FinishTensor(&stream_));
      started_ = false;
      ++tensor_;
    }
    return absl::OkStatus();
  }

  const Codec* const codec_;
  BitReader stream_;  // before the tensor that is not started
  std::unique_ptr<TensorReader> reader_;
  size_t tensor_ = 0;
  bool started_ = false;
};

}  // namespace

int64_t CountBelow(const uint32_t* positions, int64_t count, int64_t limit) {
  const uint32_t* begin = positions;
  while (count > 1) {
    const int64_t half = count / 2;
    begin += begin[half - 1] < limit ? half : 0;
    count -= half;
  }
  return begin - positions + (count == 1 && *begin < limit ? 1 : 0);
}

absl::Status TruncatedIn(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the message ends inside ", what, "; send it whole"));
}

absl::Status NotFiniteError(const TensorSpec& tensor, int64_t index, float value) {
  return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "', index ", index, ": the update is ", value,
                                                 "; training has diverged, try a lower learning rate"));
}

absl::Status TensorCodec::CheckFinite(const TensorInput& input, int64_t first, int64_t size) const {
  const uint32_t largest = GetSelectKernels().max_magnitude(input.values.data() + first, size);
  if (largest < kInfinityBits) return absl::OkStatus();
  int64_t index = first;
  while (MagnitudeBits(FloatBits(input.values[index])) < kInfinityBits) ++index;
  return NotFinite(input.tensor, index, input.values[index]);
}

absl::StatusOr<std::vector<TensorInput>> TensorCodec::Split(absl::Span<const float> update,
                                                            const EncodeOptions& options) const {
  const size_t size = static_cast<size_t>(layout_.size());
  if (update.size() != size || (!options.latest.empty() && options.latest.size() != size)) {
    return absl::InvalidArgumentError(absl::StrCat("the update has ", update.size(), " elements, its latest part ",
                                                   options.latest.size(), ", the model ", size));
  }
  if (!options.rates.empty() && options.rates.size() != layout_.tensors().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", options.rates.size(), " rates for ", layout_.tensors().size(), " tensors"));
  }
  std::vector<TensorInput> tensors(layout_.tensors().size());
  for (size_t t = 0; t < tensors.size(); ++t) {
    const TensorSpec& spec = layout_.tensors()[t];
    TensorInput& input = tensors[t];
    input.tensor = static_cast<int64_t>(t);
    input.values = update.subspan(spec.offset, spec.size);
    input.latest = options.latest.empty() ? input.values : options.latest.subspan(spec.offset, spec.size);
    input.key = options.key;
    input.scratch = options.scratch;
    if (!options.rates.empty()) input.rate = options.rates[t];
  }
  return tensors;
}

absl::StatusOr<std::string> TensorCodec::EncodeSplit(absl::Span<const TensorInput> tensors) const {
  EncodeScratch* const scratch = tensors.front().scratch;
  std::string message = scratch == nullptr ? std::string() : std::move(scratch->spent);
  message.assign(1, static_cast<char>(format_number_));
  BitWriter writer(&message);
  TERSE_RETURN_IF_ERROR(EncodeTensors(tensors, &writer));
  writer.Finish();
  return message;
}

absl::StatusOr<std::string> TensorCodec::Encode(absl::Span<const float> update, const EncodeOptions& options) const {
  TERSE_ASSIGN_OR_RETURN(const std::vector<TensorInput> tensors, Split(update, options));
  return EncodeSplit(tensors);
}

absl::StatusOr<std::string> TensorCodec::AddAndEncode(absl::Span<const float> residual, absl::Span<float> delta,
                                                      const EncodeOptions& options) const {
  if (residual.size() != delta.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the residual has ", residual.size(), " elements, the delta ", delta.size()));
  }
  TERSE_ASSIGN_OR_RETURN(std::vector<TensorInput> tensors, Split(delta, options));
  if (AddsResidual()) {
    for (size_t t = 0; t < tensors.size(); ++t) {
      tensors[t].residual = residual.data() + tensor(t).offset;
      tensors[t].sum = delta.data() + tensor(t).offset;
    }
  } else {
    for (size_t i = 0; i < delta.size(); ++i) delta[i] += residual[i];
  }
  return EncodeSplit(tensors);
}

absl::StatusOr<int64_t> TensorCodec::CostBits(absl::Span<const float> update, const EncodeOptions& options) const {
  TERSE_ASSIGN_OR_RETURN(const std::vector<TensorInput> tensors, Split(update, options));
  return TensorsBits(tensors);
}

absl::StatusOr<std::unique_ptr<UpdateCursor>> TensorCodec::Open(absl::string_view message) const {
  if (static_cast<int64_t>(message.size()) > max_message_bytes_) {
    return absl::InvalidArgumentError(absl::StrCat(name(), " message of ", message.size(),
                                                   " bytes; this model and these settings make at most ",
                                                   max_message_bytes_));
  }
  if (message.empty() || static_cast<uint8_t>(message[0]) != format_number_) {
    return absl::InvalidArgumentError(absl::StrCat("not a message of codec ", name(), " (format ", format_number_,
                                                   "); both ends need the same codec"));
  }
  auto cursor = std::make_unique<TensorCursor>(this, BitReader(message.substr(1)), NewReader());
  TERSE_RETURN_IF_ERROR(cursor->Start());
  return std::unique_ptr<UpdateCursor>(std::move(cursor));
}

}  // namespace terse
