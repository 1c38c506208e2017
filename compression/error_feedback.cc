#include "compression/error_feedback.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/bit_stream.h"
#include "core/status.h"

namespace terse {
namespace {

// The stored state is the client's own; whatever is wrong with it was lost or damaged on the way to disk and back.
absl::Status DataLoss(absl::string_view what, const absl::Status& reason) {
  return absl::DataLossError(absl::StrCat(what, ": ", reason.message()));
}

bool AllFinite(absl::Span<const float> values) {
  uint32_t bad = 0;
  for (float value : values) bad |= static_cast<uint32_t>(MagnitudeBits(FloatBits(value)) >= kInfinityBits);
  return bad == 0;
}

}  // namespace

ErrorFeedback::ErrorFeedback(const Codec* codec) : codec_(codec), dense_(codec->layout().size(), 0.0f) {}

absl::StatusOr<std::string> ErrorFeedback::Compress(absl::Span<const float> delta) {
  if (pending()) {
    return absl::FailedPreconditionError("an update is pending; settle it before compressing the next one");
  }
  if (delta.size() != dense_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the delta has ", delta.size(), " elements, the model ", dense_.size()));
  }
  std::vector<float> accumulated(dense_.size());
  for (size_t i = 0; i < dense_.size(); ++i) accumulated[i] = dense_[i] + delta[i];
  TERSE_ASSIGN_OR_RETURN(pending_, codec_->Encode(accumulated));
  dense_ = std::move(accumulated);
  return pending_;
}

absl::Status ErrorFeedback::Settle(bool applied) {
  if (!pending()) return absl::FailedPreconditionError("no update is pending, so there is nothing to settle");
  if (applied) TERSE_RETURN_IF_ERROR(codec_->AddDecoded(pending_, -1.0f, absl::MakeSpan(dense_)));
  pending_.clear();
  return absl::OkStatus();
}

double ErrorFeedback::Reset() {
  const double lost = Norm();
  dense_.assign(dense_.size(), 0.0f);
  pending_.clear();
  return lost;
}

absl::Status ErrorFeedback::Restore(absl::Span<const float> dense, absl::string_view minus, absl::string_view pending) {
  if (dense.size() != dense_.size()) {
    return absl::DataLossError(
        absl::StrCat("the stored residual has ", dense.size(), " elements, the model ", dense_.size()));
  }
  if (!AllFinite(dense)) return absl::DataLossError("the stored residual holds NaN or infinity");
  if (!minus.empty() && !pending.empty()) {
    return absl::DataLossError("the stored state has both a settled and a pending update; at most one can be open");
  }
  if (!minus.empty()) {
    absl::Status status = codec_->Validate(minus);
    if (!status.ok()) return DataLoss("the stored settled update", status);
  }
  if (!pending.empty()) {
    absl::Status status = codec_->Validate(pending);
    if (!status.ok()) return DataLoss("the stored pending update", status);
  }
  dense_.assign(dense.begin(), dense.end());
  pending_.assign(pending.data(), pending.size());
  if (!minus.empty()) TERSE_RETURN_IF_ERROR(codec_->AddDecoded(minus, -1.0f, absl::MakeSpan(dense_)));
  return absl::OkStatus();
}

double ErrorFeedback::Norm() const {
  double squares = 0;
  for (float value : dense_) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

}  // namespace terse
