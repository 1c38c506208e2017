// Adds many updates up: SBC Algorithm 1, lines 18 and 19. This goes over threads, each with its own part of the model,
// group by group of updates, so that memory does not grow with their number, and block by block, so that the part of
// the sum that is worked on stays in the cache. An element is always summed in the order of the messages, so the result
// is the same bit for bit with any number of threads and any size of block or group.
#ifndef TERSE_COMPRESSION_AGGREGATE_H_
#define TERSE_COMPRESSION_AGGREGATE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "compression/imputation.h"

namespace terse {

// The places at which to enter a message: cursors at even distances of the model. They are made while a message is
// validated, so it costs nothing on the wire; a directory inside the message would cost 0.35% at p = 0.01. Immutable;
// safe to share. The message must outlive it.
class UpdateIndex {
 public:
  // Validates the message (errors as Codec::Validate) and remembers a place at every multiple of `spacing` elements.
  // Each place takes about 5 KB.
  static absl::StatusOr<UpdateIndex> Build(const Codec& codec, absl::string_view message, int64_t spacing);

  // A cursor at the last remembered place at or before `position`; elements before `position` are still to be skipped.
  std::unique_ptr<UpdateCursor> Before(int64_t position) const;

 private:
  int64_t spacing_ = 0;
  std::vector<std::unique_ptr<UpdateCursor>> places_;
};

// FedAvg's weights (McMahan et al. 2017, Algorithm 1): n_k / n, each the float nearest to the quotient in double. Empty
// for no samples. Every number is at least 1 and n is their sum, which fits int64, or `total`, which is not below it:
// then the weights sum to less than 1.
std::vector<float> AveragingWeights(absl::Span<const int64_t> samples, int64_t total = 0);

// Without weights, average = (decoded_1 + decoded_2 + ...) * (1.0f / count); with one weight a message,
// average = weight_1 * decoded_1 + weight_2 * decoded_2 + ... Both are summed in float32 from zero. `average` has
// layout().size() elements and is overwritten. Works on `threads` >= 1 threads, for which it indexes large messages
// first. INVALID_ARGUMENT for sizes that do not fit, naming the update that does not decode, or the element whose sum
// overflows; `average` is unspecified then.
absl::Status AverageUpdates(const Codec& codec, absl::Span<const absl::string_view> messages,
                            absl::Span<const float> weights, int threads, absl::Span<float> average);

// Does the same for messages that are indexed already, one index each.
absl::Status AverageIndexed(const Codec& codec, absl::Span<const UpdateIndex> indexes, absl::Span<const float> weights,
                            int threads, absl::Span<float> average);

// Does what AverageUpdates does, with the step of imputation.h in place of the average. `trust` is 0 to 1. Takes
// further memory while it works: 4 bytes for each element of the model with more than 64 messages, else of a block.
absl::Status ImputeUpdates(const Codec& codec, absl::Span<const absl::string_view> messages,
                           absl::Span<const float> weights, float trust, int threads, absl::Span<float> step);

// The round that ImputeUpdates makes the step of.
Imputation MakeImputation(size_t updates, absl::Span<const float> weights, float trust);

// INVALID_ARGUMENT, which names the first element whose sum is not finite; there must be one. `sums` are those of the
// elements from `begin` on.
absl::Status SumOverflows(const Codec& codec, int64_t begin, absl::Span<const float> sums);

// Returns how many threads are worth starting for these messages: 1 for few and small ones, at most 4 for many small
// ones, otherwise as many as the machine has cores.
int AggregationThreads(absl::Span<const absl::string_view> messages);

}  // namespace terse

#endif  // TERSE_COMPRESSION_AGGREGATE_H_
