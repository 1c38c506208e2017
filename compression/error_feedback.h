// Residual accumulation, SBC equation (2): R_t = R_{t-1} + delta_t - decode(message_t), with the verdict in between.
// The part of an update that its message does not carry is kept and joins the next delta, so nothing is lost. With a
// decay beta < 1 the residual enters as beta * R_{t-1}: stale work fades, and conservation holds no longer.
//
// It makes biased codecs converge, and wraps any codec: it subtracts what was decoded, value by value. Accumulation
// (accumulation.h) instead forgets all of an entry that was sampled; see there why that differs.
#ifndef TERSE_COMPRESSION_ERROR_FEEDBACK_H_
#define TERSE_COMPRESSION_ERROR_FEEDBACK_H_

#include <memory>
#include <utility>

#include "compression/feedback.h"

namespace terse {

// The contract is Feedback's. The state is the residual.
class ErrorFeedback : public Feedback {
 public:
  explicit ErrorFeedback(const Codec* codec, double decay = 1, std::unique_ptr<RateSchedule> schedule = nullptr)
      : Feedback(codec, 1, decay, std::move(schedule)) {}

  absl::string_view name() const override { return "error_feedback"; }

 private:
  absl::Status Subtract(absl::string_view message) override;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_ERROR_FEEDBACK_H_
