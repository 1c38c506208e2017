#include "compression/feedback.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/bit_stream.h"
#include "compression/exact_math.h"
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

Feedback::Feedback(const Codec* codec, int vectors, double decay, std::unique_ptr<RateSchedule> schedule)
    : dense_(vectors * codec->layout().size(), 0.0f),
      codec_(codec),
      decay_(static_cast<float>(decay)),
      schedule_(std::move(schedule)),
      scratch_(codec->NewScratch()) {}

absl::StatusOr<std::string> Feedback::Compress(std::vector<float>* delta, const CodecKey& key, int64_t choice) {
  if (pending()) {
    return absl::FailedPreconditionError("an update is pending; settle it before compressing the next one");
  }
  if (delta->size() != size()) {
    return absl::InvalidArgumentError(absl::StrCat("the delta has ", delta->size(), " elements, the model ", size()));
  }
  EncodeOptions options;
  options.key = key;
  options.scratch = scratch_.get();
  options.choice = choice;
  if (codec_->traits().uses_latest) {
    latest_ = *delta;
    options.latest = latest_;
  }
  if (schedule_ != nullptr) options.rates = schedule_->Rates(key);
  TERSE_ASSIGN_OR_RETURN(std::string message, Accumulate(delta, options));
  SetPending(std::move(message), /*encoded=*/true);
  if (schedule_ != nullptr) {
    TERSE_RETURN_IF_ERROR(schedule_->Observe(*codec_, dense().subspan(0, size()), pending_));
  }
  return pending_;
}

absl::StatusOr<std::string> Feedback::Accumulate(std::vector<float>* delta, const EncodeOptions& options) {
  std::string message;
  if (decay_ == 1.0f) {
    TERSE_ASSIGN_OR_RETURN(message, codec_->AddAndEncode(dense_, absl::MakeSpan(*delta), options));
  } else {
    for (size_t i = 0; i < delta->size(); ++i) (*delta)[i] = decay_ * dense_[i] + (*delta)[i];
    TERSE_ASSIGN_OR_RETURN(message, codec_->Encode(*delta, options));
  }
  dense_.swap(*delta);
  return message;
}

absl::Status Feedback::Settle(bool applied) {
  if (!pending()) return absl::FailedPreconditionError("no update is pending, so there is nothing to settle");
  TERSE_RETURN_IF_ERROR(TakeOut(applied ? pending_ : absl::string_view()));
  scratch_->spent = std::move(pending_);
  SetPending("", /*encoded=*/false);
  return absl::OkStatus();
}

absl::Status Feedback::TakeBack(std::vector<float>* delta) {
  if (!pending()) return absl::FailedPreconditionError("no update is pending, so there is nothing to take back");
  dense_.swap(*StateBefore(delta));
  SetPending("", /*encoded=*/false);
  return absl::OkStatus();
}

absl::Status Feedback::Rejoin(absl::string_view message) {
  if (pending()) return absl::FailedPreconditionError("an update is pending; settle it before another one rejoins");
  if (const absl::Status sound = codec_->Validate(message); !sound.ok()) {
    return DataLoss("the update that rejoins", sound);
  }
  TERSE_RETURN_IF_ERROR(AddBack(message));
  SetPending(std::string(message), /*encoded=*/false);
  return absl::OkStatus();
}

absl::Status Feedback::AddBack(absl::string_view message) {
  return codec_->AddDecoded(message, 1.0f, absl::MakeSpan(dense_).subspan(0, size()));
}

absl::Status Feedback::AddCarried(absl::string_view message, float sign, absl::Span<float> accumulator) const {
  const bool kept = encoded_pending_ && message.data() == pending_.data();
  if (kept && codec_->AddEncoded(*scratch_, sign, accumulator)) return absl::OkStatus();
  return codec_->AddDecoded(message, sign, accumulator);
}

void Feedback::SetPending(std::string message, bool encoded) {
  pending_ = std::move(message);
  encoded_pending_ = encoded;
}

absl::Status Feedback::TakeOut(absl::string_view message) {
  if (!message.empty()) TERSE_RETURN_IF_ERROR(Subtract(message));
  if (message.empty() && !folds_forward()) std::fill(dense_.begin(), dense_.end(), 0.0f);
  DropBuffers();
  return absl::OkStatus();
}

void Feedback::DropBuffers() {
  for (auto vector = dense_.begin(); vector != dense_.end(); vector += size()) {
    std::fill(vector + parameters(), vector + size(), 0.0f);
  }
}

double Feedback::Reset() {
  const double lost = Norm();
  dense_.assign(dense_.size(), 0.0f);
  SetPending("", /*encoded=*/false);
  return lost;
}

absl::Status Feedback::Restore(absl::Span<const float> dense, absl::string_view minus, absl::string_view pending) {
  if (dense.size() != dense_.size()) {
    return absl::DataLossError(
        absl::StrCat("the stored state has ", dense.size(), " numbers, the run's feedback ", dense_.size()));
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
  SetPending(std::string(pending), /*encoded=*/false);
  return pending.empty() ? TakeOut(minus) : absl::OkStatus();
}

double Feedback::Norm() const { return std::sqrt(SumOfSquares(dense().subspan(0, size()))); }

}  // namespace terse
