#include "compression/error_feedback.h"

namespace terse {

absl::Status ErrorFeedback::Subtract(absl::string_view message) {
  return AddCarried(message, -1.0f, absl::MakeSpan(dense_));
}

}  // namespace terse
