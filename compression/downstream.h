// The downstream message of one round: how clients learn the new model. SBC Algorithm 1, lines 18 to 20: the server
// averages the accepted updates and broadcasts the average; or a step that it made of the average, or what a codec kept
// of that step. Both ends call ApplyDownstream on the same bytes, so they hold the same weights bit for bit. Format:
// compression/FORMAT.md.
#ifndef TERSE_COMPRESSION_DOWNSTREAM_H_
#define TERSE_COMPRESSION_DOWNSTREAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "core/run_config.h"

namespace terse {

// The codecs that read downstream messages. Both have the same layout and outlive this.
struct DownstreamCodecs {
  // Implicit: without a coded mode one codec is all there is.
  DownstreamCodecs(const Codec& updates_in, const Codec* coded_in = nullptr) : updates(updates_in), coded(coded_in) {}

  const Codec& updates;  // of the clients' messages, for kForward
  const Codec* coded;    // of kCoded; null: such messages are refused
};

// For the modes that lose nothing. kForward carries the messages themselves, kDense the step's float32 values, kAuto
// the messages or the shortest form of the step (BuildStepDownstream), whichever is smaller. `samples` are the
// clients' training samples for an average that is weighted by them (one positive number a message, their sum fits
// int64), or empty for the plain average; `total` is what they are shares of when that is more than their sum, and
// otherwise 0. `step` is ImputeUpdates (aggregate.h) of `messages` with AveragingWeights(samples, total) and `trust`,
// which is 0 for the average.
std::string BuildDownstream(DownstreamMode mode, absl::Span<const absl::string_view> messages,
                            absl::Span<const int64_t> samples, absl::Span<const float> step, int64_t total = 0,
                            float trust = 0);

// For any finite step, whatever it was made of: the shorter of the two messages that carry it exactly, as a sparse step
// (sparse_step.h) or in float32. kDense takes float32 always; other modes have no such message.
std::string BuildStepDownstream(DownstreamMode mode, absl::Span<const float> step);
std::string BuildDenseDownstream(absl::Span<const float> step);
// Whether BuildStepDownstream makes such messages.
bool IsStepDownstream(absl::string_view message);

// The message of kCoded for a message of its codec.
std::string BuildCodedDownstream(absl::string_view message);

// The choice (choice_codec.h) of the message of kCoded; 0 for any other message.
int64_t CodedChoice(absl::string_view message);

// The contents of a kForward message, in order; the views point into it. INVALID_ARGUMENT for anything else.
struct Forwarded {
  std::vector<absl::string_view> updates;
  std::vector<int64_t> samples;  // empty: the plain average
  int64_t total = 0;             // what they are shares of; 0: their sum
  float trust = 0;               // of imputation.h; 0: the average
};
absl::StatusOr<Forwarded> ParseForwarded(absl::string_view message);

// The most bytes that a downstream message of `updates` updates can have in one mode; 0 for kCoded without a codec.
int64_t MaxBytesOf(DownstreamMode mode, const DownstreamCodecs& codecs, int64_t updates);
// The same in any mode: what a receiver allows.
int64_t MaxDownstreamBytes(const DownstreamCodecs& codecs, int64_t updates);

// weights[i] += step[i]. INVALID_ARGUMENT for malformed bytes, with `weights` unchanged. `scratch` is resized to the
// layout and holds the step afterwards.
absl::Status ApplyDownstream(const DownstreamCodecs& codecs, absl::string_view message, std::vector<float>* scratch,
                             absl::Span<float> weights);

}  // namespace terse

#endif  // TERSE_COMPRESSION_DOWNSTREAM_H_
