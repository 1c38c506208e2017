// The momentum of Signum: Bernstein, Wang, Azizzadenesheli, Anandkumar, "signSGD: Compressed Optimisation for
// Non-Convex Problems" (2018), Algorithm 2: m <- beta m + (1 - beta) g, and m is what is encoded. Nothing is
// subtracted.
#ifndef TERSE_COMPRESSION_MOMENTUM_FEEDBACK_H_
#define TERSE_COMPRESSION_MOMENTUM_FEEDBACK_H_

#include <memory>
#include <utility>

#include "compression/feedback.h"

namespace terse {

// The contract is Feedback's. The state is m. Verdicts do not change it: an update that was not applied lives on in m.
// Buffers have no momentum: their deltas are not scaled.
class MomentumFeedback : public Feedback {
 public:
  // 0 <= momentum < 1: beta.
  MomentumFeedback(const Codec* codec, double momentum, std::unique_ptr<RateSchedule> schedule = nullptr)
      : Feedback(codec, 1, 1, std::move(schedule)), momentum_(static_cast<float>(momentum)) {}

  absl::string_view name() const override { return "momentum"; }

 private:
  absl::StatusOr<std::string> Accumulate(std::vector<float>* delta, const EncodeOptions& options) override;
  absl::Status Subtract(absl::string_view) override { return absl::OkStatus(); }
  absl::Status AddBack(absl::string_view) override { return absl::OkStatus(); }

  const float momentum_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_MOMENTUM_FEEDBACK_H_
