#include "python/bindings/coder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/codec_table.h"
#include "compression/feedback_table.h"
#include "core/status.h"

namespace terse {
namespace {

// MakeFeedback says which row it takes, and that does not depend on the model: a model of one element costs nothing.
absl::StatusOr<std::string> FeedbackOf(const CodecSpec& spec) {
  TERSE_ASSIGN_OR_RETURN(const Layout layout, Layout::Create({{"element", {1}}}));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<const Codec> codec, MakeCodec(spec, layout));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Feedback> feedback, MakeFeedback(spec, codec.get()));
  return std::string(feedback->name());
}

void Assign(const DecodedRun& run, int64_t base, float* out) {
  for (int64_t i = 0; i < run.count; ++i) out[run.PositionOf(i) - base] = run.values[run.common ? 0 : i];
}

}  // namespace

Coder::Coder(CodecSpec spec, Layout layout, std::unique_ptr<const Codec> codec, std::string feedback)
    : spec_(std::move(spec)), layout_(std::move(layout)), codec_(std::move(codec)), feedback_(std::move(feedback)) {}

absl::StatusOr<std::unique_ptr<const Coder>> Coder::Create(const CodecSpec& spec,
                                                           absl::Span<const Layout::Entry> entries) {
  TERSE_ASSIGN_OR_RETURN(Layout layout, Layout::Create(entries));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<const Codec> codec, MakeCodec(spec, layout));
  TERSE_ASSIGN_OR_RETURN(std::string feedback, FeedbackOf(spec));
  return std::unique_ptr<const Coder>(new Coder(spec, std::move(layout), std::move(codec), std::move(feedback)));
}

void Coder::Gather(const TensorPointers& tensors, absl::Span<float> flat) const {
  for (size_t t = 0; t < tensors.size(); ++t) {
    const TensorSpec& tensor = layout_.tensors()[t];
    std::copy_n(tensors[t], tensor.size, flat.data() + tensor.offset);
  }
}

absl::Span<const float> Coder::Flat(const TensorPointers& tensors, std::vector<float>* copy) const {
  bool in_one_piece = true;
  for (size_t t = 1; t < tensors.size(); ++t) {
    in_one_piece &= tensors[t] == tensors[t - 1] + layout_.tensors()[t - 1].size;
  }
  if (in_one_piece) return absl::MakeConstSpan(tensors[0], layout_.size());
  copy->resize(layout_.size());
  Gather(tensors, absl::MakeSpan(*copy));
  return *copy;
}

absl::StatusOr<std::string> Coder::Encode(const TensorPointers& update, const CodecKey& key) const {
  std::vector<float> copy;
  EncodeOptions options;
  options.key = key;
  return codec_->Encode(Flat(update, &copy), options);
}

absl::StatusOr<int64_t> Coder::CostBits(const TensorPointers& update, const CodecKey& key) const {
  std::vector<float> copy;
  EncodeOptions options;
  options.key = key;
  return codec_->CostBits(Flat(update, &copy), options);
}

absl::StatusOr<std::string> Coder::EncodeWithResidual(const TensorPointers& update,
                                                      const MutableTensorPointers& residual,
                                                      const CodecKey& key) const {
  if (feedback_ != "error_feedback") {
    return absl::FailedPreconditionError(absl::StrCat(
        "codec '", codec_->name(), "' has the feedback '", feedback_,
        "', whose memory is no residual; leave `residual` out, or keep the memory in codec.feedback(...)"));
  }
  std::vector<float> copy;
  const absl::Span<const float> latest = Flat(update, &copy);
  std::vector<float> sum(layout_.size());
  Gather(TensorPointers(residual.begin(), residual.end()), absl::MakeSpan(sum));
  std::fill(sum.begin() + layout_.parameters(), sum.end(), 0.0f);
  EncodeOptions options;
  options.key = key;
  if (codec_->traits().uses_latest) options.latest = latest;
  std::string message;
  const auto decay = static_cast<float>(spec_.decay);
  if (decay == 1.0f) {
    TERSE_ASSIGN_OR_RETURN(message, codec_->AddAndEncode(latest, absl::MakeSpan(sum), options));
  } else {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = decay * sum[i] + latest[i];
    TERSE_ASSIGN_OR_RETURN(message, codec_->Encode(sum, options));
  }
  std::fill(sum.begin() + layout_.parameters(), sum.end(), 0.0f);
  for (size_t t = 0; t < residual.size(); ++t) {
    const TensorSpec& tensor = layout_.tensors()[t];
    std::copy_n(sum.data() + tensor.offset, tensor.size, residual[t]);
  }
  TERSE_RETURN_IF_ERROR(ForEachRun(message, [&](const DecodedRun& run, size_t t) {
    const TensorSpec& tensor = layout_.tensors()[t];
    if (tensor.kind == TensorKind::kParameter) AddRun(run, -1.0f, tensor.offset, residual[t]);
  }));
  return message;
}

template <typename Visit>
absl::Status Coder::ForEachRun(absl::string_view message, Visit visit) const {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<UpdateCursor> cursor, codec_->Open(message));
  DecodedRun run;
  for (size_t t = 0; t < layout_.tensors().size(); ++t) {
    const int64_t end = layout_.tensors()[t].offset + layout_.tensors()[t].size;
    while (true) {
      TERSE_RETURN_IF_ERROR(cursor->Next(end, &run));
      if (run.count == 0) break;
      visit(run, t);
    }
  }
  return absl::OkStatus();
}

absl::Status Coder::Decode(absl::string_view message, const MutableTensorPointers& out) const {
  return ForEachRun(message,
                    [&](const DecodedRun& run, size_t t) { Assign(run, layout_.tensors()[t].offset, out[t]); });
}

absl::Status Coder::AddDecoded(absl::string_view message, float sign, const MutableTensorPointers& out) const {
  TERSE_RETURN_IF_ERROR(codec_->Validate(message));
  return ForEachRun(message,
                    [&](const DecodedRun& run, size_t t) { AddRun(run, sign, layout_.tensors()[t].offset, out[t]); });
}

}  // namespace terse
