#include "compression/top_select.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "compression/bit_stream.h"
#include "compression/quantize_kernels.h"
#include "compression/select_kernels.h"

namespace terse {
namespace {

constexpr int64_t kBlock = 2048;       // elements a step: their candidates stay in the first-level cache
constexpr int64_t kSampleFrom = 4096;  // smaller tensors are all candidates
constexpr int64_t kSampleShare = 128;  // one element in so many is sampled,
constexpr int64_t kMinSample = 256;
constexpr int64_t kMaxSample = 16384;  // at most so many: what its noise lets pass costs less than a larger sample
constexpr int kBucketBits = 10;
constexpr int64_t kFew = 256;     // magnitudes that are looked at one by one at once,
constexpr int64_t kRest = 4096;   // and those that one by one take less than another look at all does
constexpr int32_t kSmallest = 1;  // every entry but zero is a candidate

int BitLength(uint32_t value) { return value == 0 ? 0 : 32 - __builtin_clz(value); }

// The `rank`-th largest magnitude of some values.
struct Threshold {
  uint32_t magnitude;
  int64_t above;  // how many are larger
  int64_t equal;  // how many are as large
};

// Counts how many magnitudes of [low, high] fall in each bucket of 2^shift.
void CountBuckets(const float* values, int64_t size, uint32_t low, uint32_t high, int shift, uint32_t* buckets) {
  std::fill_n(buckets, ((high - low) >> shift) + 1, 0);
  for (int64_t i = 0; i < size; ++i) {
    const uint32_t place = MagnitudeBits(FloatBits(values[i])) - low;
    if (place <= high - low) ++buckets[place >> shift];
  }
}

// The `rank`-th largest of a few magnitudes, which it reorders.
Threshold FindAmongFew(absl::Span<uint32_t> magnitudes, int64_t rank) {
  std::nth_element(magnitudes.begin(), magnitudes.begin() + (rank - 1), magnitudes.end(), std::greater<uint32_t>());
  Threshold found = {magnitudes[rank - 1], 0, 0};
  for (uint32_t magnitude : magnitudes) {
    found.above += magnitude > found.magnitude;
    found.equal += magnitude == found.magnitude;
  }
  return found;
}

// 1 <= rank <= size, and no magnitude is below `low`. Each round narrows the range to the bucket that holds the rank,
// until few are left in it, or only equals. A first round pays for itself earlier than another one.
Threshold FindThreshold(const float* values, int64_t size, int64_t rank, uint32_t low) {
  const SelectKernels& kernels = GetSelectKernels();
  uint32_t high = kernels.max_magnitude(values, size);
  int64_t above = 0;
  for (int64_t members = size; members > (members == size ? kFew : kRest);) {
    if (low == high) return {low, above, members};
    uint32_t buckets[1 << kBucketBits];
    const int shift = std::max(0, BitLength(high - low) - kBucketBits);
    CountBuckets(values, size, low, high, shift, buckets);
    uint32_t bucket = (high - low) >> shift;
    for (; above + buckets[bucket] < rank; --bucket) above += buckets[bucket];
    members = buckets[bucket];
    low += bucket << shift;
    high = std::min(high, low + ((uint32_t{1} << shift) - 1));
  }
  uint32_t few[kRest + kSelectPad];
  const int64_t members = kernels.between(values, size, low, high, few);
  Threshold found = FindAmongFew(absl::MakeSpan(few, members), rank - above);
  found.above += above;
  return found;
}

}  // namespace

// The candidates of one selection, in the selection's own vectors.
class TopSelector::Side {
 public:
  Side(const KeyRule& rule, Selection* selection) : rule_(rule), selection_(selection) {}

  int32_t bound() const { return rule_.bound; }
  int64_t size() const { return size_; }
  // Whether the bound of Start kept some of the `count` largest out.
  bool IsShort(int64_t count) const { return size_ < count && start_ > kSmallest; }

  // No candidates; from now on those with at least the magnitude bits `bound`. There will be about `expected` of them,
  // of which `count` will be wanted, among `n` elements.
  void Start(int32_t bound, int64_t expected, int64_t count, int64_t n) {
    rule_.bound = start_ = bound;
    size_ = 0;
    const int64_t room = std::min(n, std::max(expected + expected / 8, count + count / 4) + kBlock) + kSelectPad;
    Enlarge(room, &selection_->indices);
    Enlarge(room, &selection_->values);
  }

  // Takes its own among the next `size` <= kBlock candidates.
  void Append(const uint32_t* indices, const float* values, int64_t size, int64_t count) {
    if (size_ + size + kSelectPad > static_cast<int64_t>(selection_->values.size())) Shrink(count);
    size_ += GetSelectKernels().filter(indices, values, size, rule_, selection_->indices.data() + size_,
                                       selection_->values.data() + size_);
  }

  // The `rank`-th largest magnitude bits, 1 <= rank <= size().
  Threshold Find(int64_t rank) const {
    return FindThreshold(selection_->values.data(), size_, rank, static_cast<uint32_t>(start_));
  }

  // Drops all but the `count` largest. A later entry must be larger than all of these then, not equal: ties go to the
  // lowest index.
  void Shrink(int64_t count) {
    if (size_ <= count) return;
    const Threshold least = Find(count);
    const int64_t whole = EndOfTies(least.magnitude, least.equal, count - least.above);
    const int32_t bound = static_cast<int32_t>(least.magnitude);
    const int64_t ties_kept = Filter(0, whole, bound, 0);
    size_ = ties_kept + Filter(whole, size_, bound + 1, ties_kept);
    rule_.bound = bound + 1;
  }

  // The selection is complete.
  void Finish(int64_t count) {
    Shrink(count);
    const auto size = static_cast<size_t>(size_);
    selection_->entries = {absl::MakeSpan(selection_->indices).subspan(0, size),
                           absl::MakeSpan(selection_->values).subspan(0, size), 0};
    double partial[8] = {};
    GetQuantizeKernels().add_magnitudes(selection_->values.data(), size_, partial);
    for (double part : partial) selection_->entries.sum += part;
  }

 private:
  // Makes the vector at least as large, without the spare room that it makes when it grows, and without copying.
  template <typename T>
  static void Enlarge(int64_t size, std::vector<T>* vector) {
    if (static_cast<int64_t>(vector->size()) >= size) return;
    std::vector<T>().swap(*vector);
    vector->resize(size);
  }

  // The place behind the `wanted`-th of `equal` entries of this magnitude; the end when all are wanted.
  int64_t EndOfTies(uint32_t magnitude, int64_t equal, int64_t wanted) const {
    if (wanted == equal) return size_;
    int64_t place = 0;
    for (; wanted > 0; ++place) wanted -= MagnitudeBits(FloatBits(selection_->values[place])) == magnitude;
    return place;
  }

  // Moves what has at least the magnitude bits `bound` in [begin, end) to `to`.
  int64_t Filter(int64_t begin, int64_t end, int32_t bound, int64_t to) {
    uint32_t* const indices = selection_->indices.data();
    float* const values = selection_->values.data();
    const KeyRule rule = {kEither.mask, kEither.flip, bound};
    return GetSelectKernels().filter(indices + begin, values + begin, end - begin, rule, indices + to, values + to);
  }

  KeyRule rule_;
  Selection* const selection_;
  int32_t start_ = kSmallest;
  int64_t size_ = 0;
};

namespace {

// The index of the first entry that is NaN or infinite.
absl::optional<int64_t> FirstNotFinite(const uint32_t* indices, const float* values, int64_t size) {
  if (GetSelectKernels().max_magnitude(values, size) < kInfinityBits) return absl::nullopt;
  int64_t bad = 0;
  while (MagnitudeBits(FloatBits(values[bad])) < kInfinityBits) ++bad;
  return indices[bad];
}

// In one pass, appends the candidates of all sides. Returns the first index that is NaN or infinite.
template <typename Side>
absl::optional<int64_t> Collect(const SelectInput& input, int64_t count, absl::Span<Side> sides) {
  const SelectKernels& kernels = GetSelectKernels();
  uint32_t indices[kBlock + kSelectPad];
  float values[kBlock + kSelectPad];
  const int64_t n = static_cast<int64_t>(input.values.size());
  const bool adds = input.residual != nullptr;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t kept =
        kernels.collect(input.values.data() + begin, adds ? input.residual + begin : nullptr,
                        adds ? input.sum + begin : nullptr, std::min(kBlock, n - begin), static_cast<uint32_t>(begin),
                        sides.front().bound(), sides.back().bound(), indices, values);
    if (const absl::optional<int64_t> bad = FirstNotFinite(indices, values, kept)) return bad;
    for (Side& side : sides) side.Append(indices, values, kept, count);
  }
  return absl::nullopt;
}

}  // namespace

absl::optional<int64_t> SelectAtLeast(absl::Span<const float> values, float bound, std::vector<uint32_t>* indices,
                                      std::vector<float>* kept) {
  const SelectKernels& kernels = GetSelectKernels();
  const int32_t magnitude = static_cast<int32_t>(FloatBits(bound));
  uint32_t block_indices[kBlock + kSelectPad];
  float block_values[kBlock + kSelectPad];
  const int64_t n = static_cast<int64_t>(values.size());
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t found =
        kernels.collect(values.data() + begin, nullptr, nullptr, std::min(kBlock, n - begin),
                        static_cast<uint32_t>(begin), magnitude, magnitude, block_indices, block_values);
    if (const absl::optional<int64_t> bad = FirstNotFinite(block_indices, block_values, found)) return bad;
    indices->insert(indices->end(), block_indices, block_indices + found);
    kept->insert(kept->end(), block_values, block_values + found);
  }
  return absl::nullopt;
}

int64_t TopSelector::room() const {
  int64_t room = 0;
  for (const Selection* selection : {&positive_, &negative_, &largest_}) {
    room += static_cast<int64_t>(selection->indices.capacity());
  }
  return room;
}

absl::optional<int64_t> TopSelector::SelectTails(const SelectInput& input, int64_t count) {
  Side sides[] = {Side(kPositive, &positive_), Side(kNegative, &negative_)};
  return Select(input, count, absl::MakeSpan(sides));
}

absl::optional<int64_t> TopSelector::SelectTailsAndLargest(const SelectInput& input, int64_t count) {
  // The tails stand outside, because their bounds are those of the pass. An entry that they keep out is not among the
  // largest either, for there are `count` entries of its sign that are larger or come before it.
  Side sides[] = {Side(kPositive, &positive_), Side(kEither, &largest_), Side(kNegative, &negative_)};
  return Select(input, count, absl::MakeSpan(sides));
}

absl::optional<int64_t> TopSelector::SelectLargest(const SelectInput& input, int64_t count) {
  Side side(kEither, &largest_);
  return Select(input, count, absl::MakeSpan(&side, 1));
}

absl::optional<int64_t> TopSelector::Select(const SelectInput& input, int64_t count, absl::Span<Side> sides) {
  const int64_t n = static_cast<int64_t>(input.values.size());
  StartAboveSample(input, count, sides);
  const absl::optional<int64_t> bad = Collect(input, count, sides);
  if (bad.has_value()) return bad;
  // A sample that misled kept too many out: look again without a bound. The sums are there already.
  bool again = false;
  for (Side& side : sides) again |= side.IsShort(count);
  if (again) {
    for (Side& side : sides) side.Start(kSmallest, count, count, n);
    Collect({input.residual == nullptr ? input.values : absl::MakeConstSpan(input.sum, n)}, count, sides);
  }
  for (Side& side : sides) side.Finish(count);
  return absl::nullopt;
}

void TopSelector::StartAboveSample(const SelectInput& input, int64_t count, absl::Span<Side> sides) {
  const int64_t n = static_cast<int64_t>(input.values.size());
  if (n < kSampleFrom) {
    for (Side& side : sides) side.Start(kSmallest, n, count, n);
    return;
  }
  const int64_t wanted = std::min(kMaxSample, std::max(kMinSample, n / kSampleShare));
  // An odd stride does not stay in one column of a matrix whose rows are a power of two.
  const int64_t stride = std::max<int64_t>(1, n / wanted) | 1;
  sample_.clear();
  for (int64_t i = stride / 2; i < n; i += stride) {
    sample_.push_back(input.residual == nullptr ? input.values[i] : input.values[i] + input.residual[i]);
  }
  const int64_t sampled = static_cast<int64_t>(sample_.size());
  for (Side& side : sides) side.Start(kSmallest, sampled, sampled, sampled);
  // NaN or infinity in the sample ends this early, and the pass over the tensor will end there or before.
  Collect({sample_}, sampled, sides);
  const double share = static_cast<double>(sampled) / static_cast<double>(n);
  const double expected = static_cast<double>(count) * share;
  const int64_t rank = static_cast<int64_t>(expected + 4 * std::sqrt(expected) + 4);
  for (Side& side : sides) {
    const bool reached = side.size() >= rank;
    const int32_t bound = reached ? static_cast<int32_t>(side.Find(rank).magnitude) : kSmallest;
    const double reaching = static_cast<double>(reached ? rank : side.size()) / share;
    side.Start(bound, static_cast<int64_t>(reaching), count, n);
  }
}

}  // namespace terse
