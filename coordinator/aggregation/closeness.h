// Which updates of a round lie close to others: the score of Krum (Blanchard et al. 2017, section 4), for Krum,
// multi-Krum and Bulyan.
#ifndef TERSE_COORDINATOR_AGGREGATION_CLOSENESS_H_
#define TERSE_COORDINATOR_AGGREGATION_CLOSENESS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec.h"

namespace terse {

// Squared L2 distances between the updates' parameters (an element that was not sent is zero), summed in double in the
// order of positions. Buffers are not looked at. Memory: 12 bytes for each pair of updates, 48 MiB for
// kMostComparedUpdates of them, and while it is made that of UpdateBlocks. Time: O(updates x elements sent), then
// O(updates^2 x log updates).
class Closeness {
 public:
  // INVALID_ARGUMENT as UpdateBlocks.
  static absl::StatusOr<Closeness> Measure(const Codec& codec, absl::Span<const absl::string_view> messages);

  size_t size() const { return size_; }
  double SquaredDistance(size_t i, size_t j) const { return distances_[i * size_ + j]; }

  // The sum of the distances from update i to the `neighbours` closest of the others that are `left`. Sorted before
  // they are summed, so the order of the updates does not show.
  double Score(size_t i, const std::vector<bool>& left, int64_t neighbours) const;

  // All updates, the one with the least score first, ties by the lowest index; with f hostile ones each has
  // size() - f - 2 neighbours.
  std::vector<size_t> ByScore(int64_t byzantine) const;

 private:
  Closeness() = default;

  size_t size_ = 0;
  std::vector<double> distances_;
  std::vector<uint32_t> order_;  // of update i: all updates, the closest first, from i * size_ on
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_AGGREGATION_CLOSENESS_H_
