// Exact selection of the largest entries of a tensor without sorting: a strided sample gives loose bounds, one fused
// pass over residual + delta collects the candidates beyond them, and an exact radix selection runs on those few
// survivors. When more candidates turn up than there is room for, the selection runs early and raises the bound, so
// that neither time nor memory depends on the sample being right; when too few turn up, a second pass has no bound to
// start with.
#ifndef TERSE_COMPRESSION_TOP_SELECT_H_
#define TERSE_COMPRESSION_TOP_SELECT_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace terse {

// One tensor's numbers: values[i], or values[i] + residual[i] when `residual` is not null; then the sums are written to
// `sum` (not null then), which may be `values` itself, in the same pass. Sums are plain float32 additions.
struct SelectInput {
  absl::Span<const float> values;  // fewer than 2^31
  const float* residual = nullptr;
  float* sum = nullptr;
};

// Entries of the same sign (tails) or of both signs (SelectLargest), in the memory of a selector, until that selects
// again. Zeros belong to none.
struct TopEntries {
  absl::Span<const uint32_t> indices;  // increasing
  absl::Span<const float> values;      // the entries themselves, with their signs
  // The sum of the magnitudes, in double: entry j is added to partial sum j mod 8 in the order of j, then the eight
  // partial sums are added to zero in order. The same on every machine.
  double sum = 0;
};

// Appends the entries of magnitude at least `bound` > 0, in order. Returns the index of the first NaN or infinity, in
// which case what was appended is unspecified; nullopt when there is none.
absl::optional<int64_t> SelectAtLeast(absl::Span<const float> values, float bound, std::vector<uint32_t>* indices,
                                      std::vector<float>* kept);

// Keeps its buffers between calls, whose beginnings are the selections: with the candidates they take up to about 1.5 *
// count entries of 8 bytes a side for a tensor of millions of elements and a density of 0.01, and 2.5 * count at 0.001.
// Time is linear in the tensor whatever the numbers are. Not thread-safe.
class TopSelector {
 public:
  // Finds the `count` >= 1 largest positive and the `count` largest negative entries; ties go to the lowest index, and
  // a side with fewer entries has all of them. Returns the index of the first NaN or infinity among the (summed)
  // numbers, in which case the selections are unspecified and `sum` is written up to an unspecified place; nullopt when
  // there is none, and then `sum` is written completely.
  absl::optional<int64_t> SelectTails(const SelectInput& input, int64_t count);

  // Finds likewise the `count` entries of largest magnitude, whatever their sign.
  absl::optional<int64_t> SelectLargest(const SelectInput& input, int64_t count);

  // Does both in the same pass.
  absl::optional<int64_t> SelectTailsAndLargest(const SelectInput& input, int64_t count);

  // The entries of the last selection of tails.
  const TopEntries& positive() const { return positive_.entries; }
  const TopEntries& negative() const { return negative_.entries; }
  // The entries of the last selection of the largest.
  const TopEntries& largest() const { return largest_.entries; }

  // Returns how many entries the buffers have room for, all sides together.
  int64_t room() const;

 private:
  class Side;

  // The buffers never shrink: filling what they gain when they grow again would take longer than the selection.
  struct Selection {
    std::vector<uint32_t> indices;
    std::vector<float> values;
    TopEntries entries;
  };

  // Makes the selections: fills `sides`, whose first one has the bound of positive entries, the last one that of
  // negative ones.
  absl::optional<int64_t> Select(const SelectInput& input, int64_t count, absl::Span<Side> sides);
  // Starts `sides` with bounds that about count, and seldom fewer, entries reach.
  void StartAboveSample(const SelectInput& input, int64_t count, absl::Span<Side> sides);

  Selection positive_;
  Selection negative_;
  Selection largest_;
  std::vector<float> sample_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_TOP_SELECT_H_
