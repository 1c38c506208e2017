#include "compression/top_select.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "compression/bit_stream.h"

namespace terse {
namespace {

constexpr int64_t kBlock = 32;         // elements tested at once; GCC unrolls shorter loops instead of vectorising them
constexpr int64_t kSampleFrom = 4096;  // smaller tensors are all candidates
constexpr int64_t kMinSample = 256;
constexpr int64_t kSampleTail = 256;  // sampled entries that the tail should hold, if the sample may be that large
constexpr int64_t kSampleShare = 16;  // at most one element in so many is sampled
constexpr int64_t kSlackGrowth = 8;
constexpr int32_t kSmallest = 1;  // every entry but zero is a candidate

// The magnitude bits of a float of the wanted sign; negative for a float of the other sign.
int32_t IfPositive(uint32_t float_bits) { return static_cast<int32_t>(float_bits); }
int32_t IfNegative(uint32_t float_bits) { return static_cast<int32_t>(float_bits ^ 0x80000000u); }

uint32_t KeyMagnitude(uint64_t key) { return static_cast<uint32_t>(key >> 32); }
uint32_t KeyIndex(uint64_t key) { return ~static_cast<uint32_t>(key); }

// The magnitude that `rank` sampled entries of one sign reach, or the smallest one when too few do.
int32_t SampleBound(std::vector<int32_t>::iterator begin, std::vector<int32_t>::iterator end, int64_t rank) {
  if (end - begin <= rank) return kSmallest;
  std::nth_element(begin, begin + rank, end, std::greater<int32_t>());
  return begin[rank];
}

// The first candidate that is NaN or infinite. Keys are in index order.
int64_t FirstNotFinite(const std::vector<uint64_t>& keys, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    if (KeyMagnitude(keys[i]) >= kInfinityBits) return KeyIndex(keys[i]);
  }
  return std::numeric_limits<int64_t>::max();
}

}  // namespace

absl::optional<int64_t> TopSelector::Select(absl::Span<const float> values, int64_t count) {
  for (int64_t slack = 1;; slack *= kSlackGrowth) {
    const Bounds bounds = LooseBounds(values, count, slack);
    Collect(values, bounds);
    // NaN and infinity are always among the candidates.
    const int64_t bad =
        std::min(FirstNotFinite(positive_keys_, positive_count_), FirstNotFinite(negative_keys_, negative_count_));
    if (bad != std::numeric_limits<int64_t>::max()) return bad;
    // A sample that misled left too few candidates: look again with looser bounds.
    if ((positive_count_ >= count || bounds.positive == kSmallest) &&
        (negative_count_ >= count || bounds.negative == kSmallest)) {
      break;
    }
  }
  Keep(count, positive_keys_, positive_count_, &positive_);
  Keep(count, negative_keys_, negative_count_, &negative_);
  return absl::nullopt;
}

TopSelector::Bounds TopSelector::LooseBounds(absl::Span<const float> values, int64_t count, int64_t slack) {
  const int64_t n = values.size();
  if (n < kSampleFrom) return {kSmallest, kSmallest};
  const int64_t size = std::max(kMinSample, std::min(kSampleTail * (n / count), n / kSampleShare));
  // An odd stride does not stay in one column of a matrix whose rows are a power of two.
  const int64_t stride = std::max<int64_t>(1, n / size) | 1;
  sample_.clear();
  int64_t sampled = 0;
  for (int64_t i = stride / 2; i < n; i += stride, ++sampled) {
    const uint32_t bits = FloatBits(values[i]);
    if (MagnitudeBits(bits) != 0) sample_.push_back(static_cast<int32_t>(bits));
  }
  const auto middle = std::partition(sample_.begin(), sample_.end(), [](int32_t bits) { return bits > 0; });
  std::for_each(middle, sample_.end(), [](int32_t& bits) { bits = IfNegative(static_cast<uint32_t>(bits)); });
  const double expected = static_cast<double>(count) * static_cast<double>(sampled) / static_cast<double>(n);
  const int64_t rank = slack * static_cast<int64_t>(expected + 4 * std::sqrt(expected) + 4);
  return {SampleBound(sample_.begin(), middle, rank), SampleBound(middle, sample_.end(), rank)};
}

void TopSelector::Collect(absl::Span<const float> values, Bounds bounds) {
  positive_count_ = 0;
  negative_count_ = 0;
  const int64_t n = values.size();
  int64_t begin = 0;
  for (; begin + kBlock <= n; begin += kBlock) {
    uint32_t block[kBlock];
    std::memcpy(block, values.data() + begin, sizeof(block));
    int32_t hit = 0;
    for (uint32_t bits : block) {
      hit |= -static_cast<int32_t>(IfPositive(bits) >= bounds.positive);
      hit |= -static_cast<int32_t>(IfNegative(bits) >= bounds.negative);
    }
    if (hit != 0) CollectBlock(values, begin, begin + kBlock, bounds);
  }
  CollectBlock(values, begin, n, bounds);
}

void TopSelector::CollectBlock(absl::Span<const float> values, int64_t begin, int64_t end, Bounds bounds) {
  for (auto* keys : {&positive_keys_, &negative_keys_}) {
    const int64_t used = keys == &positive_keys_ ? positive_count_ : negative_count_;
    if (static_cast<int64_t>(keys->size()) < used + kBlock) keys->resize(std::max<size_t>(1024, 2 * keys->size()));
  }
  // Without branches: every key is written, and the counters move on for those that stay.
  uint64_t* positive = positive_keys_.data() + positive_count_;
  uint64_t* negative = negative_keys_.data() + negative_count_;
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t bits = FloatBits(values[i]);
    const uint64_t key = static_cast<uint64_t>(MagnitudeBits(bits)) << 32 | static_cast<uint32_t>(~i);
    *positive = key;
    positive += IfPositive(bits) >= bounds.positive;
    *negative = key;
    negative += IfNegative(bits) >= bounds.negative;
  }
  positive_count_ = positive - positive_keys_.data();
  negative_count_ = negative - negative_keys_.data();
}

void TopSelector::Keep(int64_t count, const std::vector<uint64_t>& keys, int64_t size, Tail* tail) {
  uint64_t least = 0;
  if (size > count) {
    scratch_.assign(keys.begin(), keys.begin() + size);
    std::nth_element(scratch_.begin(), scratch_.begin() + (count - 1), scratch_.end(), std::greater<uint64_t>());
    least = scratch_[count - 1];
  }
  tail->indices.clear();
  tail->sum = 0;
  // Going through the candidates again in their order keeps the indices sorted.
  for (int64_t i = 0; i < size; ++i) {
    if (keys[i] < least) continue;
    tail->indices.push_back(KeyIndex(keys[i]));
    tail->sum += static_cast<double>(FloatFromBits(KeyMagnitude(keys[i])));
  }
}

}  // namespace terse
