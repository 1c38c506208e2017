// No memory: what an applied message did not carry is dropped, as unbiased codecs (qsgd, terngrad, low_precision) and
// plain signSGD are defined. An update that was not applied still folds into the next one: its work was never in the
// model.
//
// Discard is for gradients, whose weights are out of date by the next one: it drops the updates that were not applied,
// too.
#ifndef TERSE_COMPRESSION_NO_FEEDBACK_H_
#define TERSE_COMPRESSION_NO_FEEDBACK_H_

#include <memory>
#include <utility>

#include "compression/feedback.h"

namespace terse {

// The contract is Feedback's. The state is zero, or the deltas since the last applied message.
class NoFeedback : public Feedback {
 public:
  explicit NoFeedback(const Codec* codec, std::unique_ptr<RateSchedule> schedule = nullptr)
      : Feedback(codec, 1, 1, std::move(schedule)) {}

  absl::string_view name() const override { return "none"; }
  bool forgets() const override { return true; }

 private:
  absl::Status Subtract(absl::string_view message) override;
};

// The contract is Feedback's. The state is zero between updates.
class Discard : public NoFeedback {
 public:
  using NoFeedback::NoFeedback;

  absl::string_view name() const override { return "discard"; }
  bool folds_forward() const override { return false; }
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_NO_FEEDBACK_H_
