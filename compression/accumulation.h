// Local gradient accumulation of Monte Carlo Gradient Quantization: Mordido, Van Keirsbilck, Keller (CVPR workshops
// 2020), section 3.3, Algorithm 4: ag <- ag + g; what is encoded is ag; ag[sampled] <- 0.
//
// This is not error feedback: a sampled entry is forgotten whole, though its level stands for more or less than it
// held. An unbiased codec makes up for that on average, and no quantization error comes back a round later;
// error_feedback.h would sample the errors of earlier samples.
//
// An update that was not applied stays in ag. A message that carries all elements empties it.
#ifndef TERSE_COMPRESSION_ACCUMULATION_H_
#define TERSE_COMPRESSION_ACCUMULATION_H_

#include <memory>
#include <utility>

#include "compression/feedback.h"

namespace terse {

// Zeroes the parameters that the message speaks of in each vector of `state`, a whole number of vectors of
// codec.layout().size() floats; all of it when the message carries everything. INVALID_ARGUMENT for a message that does
// not decode; the state is as before then.
absl::Status ForgetSent(const Codec& codec, absl::string_view message, absl::Span<float> state);

// The contract is Feedback's. The state is ag.
class Accumulation : public Feedback {
 public:
  explicit Accumulation(const Codec* codec, std::unique_ptr<RateSchedule> schedule = nullptr)
      : Feedback(codec, 1, 1, std::move(schedule)) {}

  absl::string_view name() const override { return "accumulation"; }

 private:
  absl::Status Subtract(absl::string_view message) override {
    return ForgetSent(codec(), message, absl::MakeSpan(dense_));
  }
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_ACCUMULATION_H_
