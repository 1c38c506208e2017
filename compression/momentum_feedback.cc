#include "compression/momentum_feedback.h"

#include "core/status.h"

namespace terse {

absl::StatusOr<std::string> MomentumFeedback::Accumulate(std::vector<float>* delta, const EncodeOptions& options) {
  const float fresh = 1.0f - momentum_;
  for (size_t i = 0; i < parameters(); ++i) (*delta)[i] = momentum_ * dense_[i] + fresh * (*delta)[i];
  TERSE_ASSIGN_OR_RETURN(std::string message, codec().Encode(*delta, options));
  dense_.swap(*delta);
  return message;
}

}  // namespace terse
