#include "compression/buffer_tail_codec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compression/bit_stream.h"
#include "compression/dense.h"
#include "compression/tensor_codec.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<EncodeOptions> BufferTailCodec::ForParameters(size_t update, const EncodeOptions& options) const {
  const size_t size = static_cast<size_t>(layout_.size());
  if (update != size || (!options.latest.empty() && options.latest.size() != size)) {
    return absl::InvalidArgumentError(absl::StrCat("the update has ", update, " elements, its latest part ",
                                                   options.latest.size(), ", the model ", size));
  }
  if (!options.rates.empty() && options.rates.size() != layout_.tensors().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", options.rates.size(), " rates for ", layout_.tensors().size(), " tensors"));
  }
  EncodeOptions parameters = options;
  parameters.latest = options.latest.subspan(0, layout_.parameters());
  parameters.rates = options.rates.subspan(0, parameters_->layout().tensors().size());
  return parameters;
}

absl::Status BufferTailCodec::CheckBuffers(absl::Span<const float> update) const {
  for (const TensorSpec& tensor : layout_.tensors().subspan(parameters_->layout().tensors().size())) {
    for (int64_t i = 0; i < tensor.size; ++i) {
      const float value = update[tensor.offset + i];
      if (MagnitudeBits(FloatBits(value)) >= kInfinityBits) return NotFiniteError(tensor, i, value);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> BufferTailCodec::WithBuffers(absl::StatusOr<std::string> message,
                                                         absl::Span<const float> update) const {
  if (!message.ok()) return message;
  TERSE_RETURN_IF_ERROR(CheckBuffers(update));
  AppendFloats(update.subspan(layout_.parameters()), &*message);
  return message;
}

absl::StatusOr<std::string> BufferTailCodec::Encode(absl::Span<const float> update,
                                                    const EncodeOptions& options) const {
  TERSE_ASSIGN_OR_RETURN(const EncodeOptions parameters, ForParameters(update.size(), options));
  return WithBuffers(parameters_->Encode(update.subspan(0, layout_.parameters()), parameters), update);
}

absl::StatusOr<std::string> BufferTailCodec::AddAndEncode(absl::Span<const float> residual, absl::Span<float> delta,
                                                          const EncodeOptions& options) const {
  if (residual.size() != delta.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the residual has ", residual.size(), " elements, the delta ", delta.size()));
  }
  TERSE_ASSIGN_OR_RETURN(const EncodeOptions parameters, ForParameters(delta.size(), options));
  const size_t count = static_cast<size_t>(layout_.parameters());
  for (size_t i = count; i < delta.size(); ++i) delta[i] += residual[i];
  return WithBuffers(parameters_->AddAndEncode(residual.subspan(0, count), delta.subspan(0, count), parameters), delta);
}

absl::StatusOr<int64_t> BufferTailCodec::CostBits(absl::Span<const float> update, const EncodeOptions& options) const {
  TERSE_ASSIGN_OR_RETURN(const EncodeOptions parameters, ForParameters(update.size(), options));
  TERSE_ASSIGN_OR_RETURN(const int64_t bits,
                         parameters_->CostBits(update.subspan(0, layout_.parameters()), parameters));
  TERSE_RETURN_IF_ERROR(CheckBuffers(update));
  return bits + 8 * TailBytes();
}

class BufferTailCodec::Cursor : public UpdateCursor {
 public:
  Cursor(const BufferTailCodec* codec, std::unique_ptr<UpdateCursor> parameters, absl::string_view tail)
      : codec_(codec), parameters_(std::move(parameters)), tail_(tail), next_(codec->layout_.parameters()) {}

  std::unique_ptr<UpdateCursor> Clone() const override {
    auto clone = std::make_unique<Cursor>(codec_, parameters_->Clone(), tail_);
    clone->next_ = next_;
    return clone;
  }

  absl::Status Next(int64_t limit, DecodedRun* run) override {
    const int64_t begin = codec_->layout_.parameters();
    if (next_ == begin) {
      TERSE_RETURN_IF_ERROR(parameters_->Next(std::min(limit, begin), run));
      if (run->count > 0) return absl::OkStatus();
    }
    const int64_t end = std::min(codec_->layout_.size(), limit);
    *run = {std::max<int64_t>(0, std::min(end - next_, kDecodedRun)), nullptr, next_, values_, false};
    for (int64_t i = 0; i < run->count; ++i, ++next_) {
      values_[i] = FloatAt(tail_, next_ - begin);
      if (MagnitudeBits(FloatBits(values_[i])) >= kInfinityBits) return NotFinite(values_[i]);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status NotFinite(float value) const {
    return absl::InvalidArgumentError(absl::StrCat(codec_->name(), " message, ",
                                                   DescribeElement(codec_->layout_, next_), ": the value is ", value,
                                                   "; it must be finite"));
  }

  const BufferTailCodec* const codec_;
  std::unique_ptr<UpdateCursor> parameters_;
  const absl::string_view tail_;
  int64_t next_;  // flat position of the next element of a buffer
  float values_[kDecodedRun];
};

absl::StatusOr<size_t> BufferTailCodec::ParameterBytes(absl::string_view message) const {
  const size_t tail = static_cast<size_t>(TailBytes());
  if (message.size() > tail) return message.size() - tail;
  return absl::InvalidArgumentError(absl::StrCat(name(), " message of ", message.size(),
                                                 " bytes; it ends with the model's buffers, which take ", tail,
                                                 ", behind at least one; send it whole"));
}

absl::StatusOr<std::unique_ptr<UpdateCursor>> BufferTailCodec::Open(absl::string_view message) const {
  TERSE_ASSIGN_OR_RETURN(const size_t parameters, ParameterBytes(message));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<UpdateCursor> cursor, parameters_->Open(message.substr(0, parameters)));
  return std::unique_ptr<UpdateCursor>(std::make_unique<Cursor>(this, std::move(cursor), message.substr(parameters)));
}

absl::StatusOr<std::string> BufferTailCodec::Pack(absl::string_view message, const UpdateHistory& history) const {
  TERSE_ASSIGN_OR_RETURN(const size_t parameters, ParameterBytes(message));
  TERSE_ASSIGN_OR_RETURN(const std::string packed, parameters_->Pack(message.substr(0, parameters), history));
  return absl::StrCat(packed, message.substr(parameters));
}

absl::StatusOr<std::string> BufferTailCodec::Unpack(absl::string_view packed, const UpdateHistory& history) const {
  TERSE_ASSIGN_OR_RETURN(const size_t parameters, ParameterBytes(packed));
  TERSE_ASSIGN_OR_RETURN(const std::string message, parameters_->Unpack(packed.substr(0, parameters), history));
  return absl::StrCat(message, packed.substr(parameters));
}

absl::Status BufferTailCodec::AddToHistory(absl::string_view message, UpdateHistory* history) const {
  TERSE_ASSIGN_OR_RETURN(const size_t parameters, ParameterBytes(message));
  return parameters_->AddToHistory(message.substr(0, parameters), history);
}

}  // namespace terse
