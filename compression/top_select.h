// Exact selection of the largest entries of both signs without sorting: a strided sample gives loose bounds, one pass
// collects the candidates of both tails, and an exact selection runs on those few survivors.
#ifndef TERSE_COMPRESSION_TOP_SELECT_H_
#define TERSE_COMPRESSION_TOP_SELECT_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace terse {

// The entries of one sign with the largest magnitudes; ties go to the lowest index. Zeros belong to no tail.
struct Tail {
  std::vector<uint32_t> indices;  // increasing; min(count, number of entries of this sign)
  double sum = 0;                 // of their magnitudes, added in index order
};

// Keeps its buffers between calls. Not thread-safe.
class TopSelector {
 public:
  // Finds the `count` >= 1 largest positive and the `count` largest negative entries of `values`. Returns the index of
  // the first NaN or infinity, in which case the tails are unspecified; nullopt when there is none.
  absl::optional<int64_t> Select(absl::Span<const float> values, int64_t count);

  const Tail& positive() const { return positive_; }
  const Tail& negative() const { return negative_; }

 private:
  // Magnitude bits, at least 1; entries at or beyond them are candidates. Integer comparisons vectorise, order floats
  // of one sign as their values, and let NaN and infinity pass every bound.
  struct Bounds {
    int32_t positive;
    int32_t negative;
  };

  Bounds LooseBounds(absl::Span<const float> values, int64_t count, int64_t slack);
  void Collect(absl::Span<const float> values, Bounds bounds);
  void CollectBlock(absl::Span<const float> values, int64_t begin, int64_t end, Bounds bounds);
  void Keep(int64_t count, const std::vector<uint64_t>& keys, int64_t size, Tail* tail);

  // A key is magnitude bits << 32 | ~index: a larger key is a larger magnitude, or the same one at a lower index.
  // Vectors only grow; the counters say how much of them is in use.
  std::vector<uint64_t> positive_keys_;
  std::vector<uint64_t> negative_keys_;
  int64_t positive_count_ = 0;
  int64_t negative_count_ = 0;
  std::vector<uint64_t> scratch_;
  std::vector<int32_t> sample_;
  Tail positive_;
  Tail negative_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_TOP_SELECT_H_
