// The downstream message of one round: how clients learn the new model. SBC Algorithm 1, lines 18 to 20: the server
// averages the accepted updates and broadcasts the average. Both ends call ApplyDownstream on the same bytes, so they
// hold the same weights bit for bit. Format: compression/FORMAT.md.
#ifndef TERSE_COMPRESSION_DOWNSTREAM_H_
#define TERSE_COMPRESSION_DOWNSTREAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "core/run_config.h"

namespace terse {

// kForward carries the messages themselves (lossless), kDense the averaged float32 values (lossless), kAuto whichever
// is smaller. `samples` are the clients' training samples for an average that is weighted by them (one positive number
// a message, their sum fits int64), or empty for the plain average. `average` is AverageUpdates (aggregate.h) of
// `messages` with AveragingWeights(samples).
std::string BuildDownstream(DownstreamMode mode, absl::Span<const absl::string_view> messages,
                            absl::Span<const int64_t> samples, absl::Span<const float> average);

// What a kForward message carries, in order; the views point into it. INVALID_ARGUMENT for anything else.
struct Forwarded {
  std::vector<absl::string_view> updates;
  std::vector<int64_t> samples;  // empty: the plain average
};
absl::StatusOr<Forwarded> ParseForwarded(absl::string_view message);

// The most bytes that a downstream message of `updates` updates can have, in any mode: what a receiver allows.
int64_t MaxDownstreamBytes(const Codec& codec, int64_t updates);

// weights[i] += average[i]. INVALID_ARGUMENT for malformed bytes, with `weights` unchanged. `scratch` is resized to the
// layout and holds the average afterwards.
absl::Status ApplyDownstream(const Codec& codec, absl::string_view message, std::vector<float>* scratch,
                             absl::Span<float> weights);

}  // namespace terse

#endif  // TERSE_COMPRESSION_DOWNSTREAM_H_
