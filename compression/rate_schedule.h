// Rates that change from round to round: how dense the next message of each tensor should be. Warm-up
// (momentum_correction.h) and dynamic sampling (dynamic_sampling.h) are schedules; one is held by a client's Feedback.
#ifndef TERSE_COMPRESSION_RATE_SCHEDULE_H_
#define TERSE_COMPRESSION_RATE_SCHEDULE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec.h"

namespace terse {

// Not thread-safe. Not part of the stored state: a restarted client begins anew.
class RateSchedule {
 public:
  virtual ~RateSchedule() = default;

  // EncodeOptions::rates for the encoding of that key; valid until the next call.
  virtual absl::Span<const double> Rates(const CodecKey& key) = 0;

  // Tells the schedule the update that was encoded with those rates, and its message.
  virtual absl::Status Observe(const Codec& codec, absl::Span<const float> update, absl::string_view message) = 0;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_RATE_SCHEDULE_H_
