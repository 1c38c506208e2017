// The observations of a feedback (compression/feedback.h) are stored with the trainer's state of the same update: both
// are as of the training that the update came from, and a file of their own would take one more sync in every round.
// Format: kObservationsMark, with which no trainer's state begins; uint32, little-endian, the bytes of the
// observations; the observations; the trainer's state. Of a feedback that observes nothing, it is the trainer's
// state alone.
#ifndef TERSE_CLIENT_OBSERVATIONS_H_
#define TERSE_CLIENT_OBSERVATIONS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace terse {

// Random; in hexadecimal 9b1d6ac3 5fe04827 b8713e9a 04d2c65f.
inline constexpr absl::string_view kObservationsMark("\x9b\x1d\x6a\xc3\x5f\xe0\x48\x27\xb8\x71\x3e\x9a\x04\xd2\xc6\x5f",
                                                     16);

std::string WithObservations(absl::string_view observations, std::string trainer_state);

struct ObservedState {
  absl::string_view observations;
  absl::string_view trainer_state;
};

// The parts of what is stored; the views point into it. DATA_LOSS for bytes that WithObservations never makes.
absl::StatusOr<ObservedState> ReadObservations(absl::string_view stored);

}  // namespace terse

#endif  // TERSE_CLIENT_OBSERVATIONS_H_
