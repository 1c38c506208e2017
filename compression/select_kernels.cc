#include "compression/select_kernels.h"

#include <algorithm>
#include <cstddef>

#include "compression/bit_stream.h"
#include "compression/byte_places.h"
#include "compression/fetch_ahead.h"
#include "compression/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/select_kernels.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef TERSE_SELECT_KERNELS_SCALAR
#define TERSE_SELECT_KERNELS_SCALAR

// Plain C++: a path of its own, and the ends that do not fill a vector.
namespace terse {
namespace {
namespace scalar {

inline int64_t Collect(const float* values, const float* residual, float* sum, int64_t size, uint32_t first,
                       int32_t positive, int32_t negative, uint32_t* kept_indices, float* kept_values) {
  int64_t kept = 0;
  for (int64_t i = 0; i < size; ++i) {
    float value = values[i];
    if (residual != nullptr) sum[i] = value += residual[i];
    const uint32_t bits = FloatBits(value);
    // Without branches: every entry is written, and the count moves on for those that stay.
    kept_indices[kept] = first + static_cast<uint32_t>(i);
    kept_values[kept] = value;
    kept += static_cast<int>(Key(kPositive, bits) >= positive) | static_cast<int>(Key(kNegative, bits) >= negative);
  }
  return kept;
}

// Writes base + the places of the ones of `word`, and some more words behind them. Returns how many ones there are.
HWY_INLINE int64_t StoreOnes(uint64_t word, uint32_t base, uint32_t* places) {
  constexpr int kUsual = 4;  // ones that are written whether they are there or not
  constexpr uint64_t kLast = uint64_t{1} << 63;
  if (word == 0) return 0;
  const int64_t count = __builtin_popcountll(word);
  for (int64_t j = 0; j < kUsual; ++j, word &= word - 1) places[j] = base + __builtin_ctzll(word | kLast);
  for (int64_t j = kUsual; j < count; ++j, word &= word - 1) places[j] = base + __builtin_ctzll(word);
  return count;
}

inline int64_t Filter(const uint32_t* indices, const float* values, int64_t size, KeyRule rule, uint32_t* kept_indices,
                      float* kept_values) {
  int64_t kept = 0;
  for (int64_t i = 0; i < size; ++i) {
    const float value = values[i];
    kept_indices[kept] = indices[i];
    kept_values[kept] = value;
    kept += static_cast<int>(Key(rule, FloatBits(value)) >= rule.bound);
  }
  return kept;
}

inline uint32_t MaxMagnitude(const float* values, int64_t size) {
  uint32_t most = 0;
  for (int64_t i = 0; i < size; ++i) most = std::max(most, MagnitudeBits(FloatBits(values[i])));
  return most;
}

inline int64_t Between(const float* values, int64_t size, uint32_t low, uint32_t high, uint32_t* kept) {
  int64_t count = 0;
  for (int64_t i = 0; i < size; ++i) {
    const uint32_t magnitude = MagnitudeBits(FloatBits(values[i]));
    kept[count] = magnitude;
    count += magnitude - low <= high - low;
  }
  return count;
}

inline int64_t Nonzero(const uint32_t* words, int64_t size, uint32_t first, uint32_t* places) {
  int64_t found = 0;
  for (int64_t i = 0; i < size; ++i) {
    places[found] = first + static_cast<uint32_t>(i);
    found += static_cast<int>(words[i] != 0);
  }
  return found;
}

constexpr SelectKernels kKernels = {Collect, Filter, MaxMagnitude, Between, Nonzero};

}  // namespace scalar
}  // namespace
}  // namespace terse

#endif  // TERSE_SELECT_KERNELS_SCALAR

HWY_BEFORE_NAMESPACE();
namespace terse {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

using scalar::kKernels;

#else
namespace hn = hwy::HWY_NAMESPACE;

// The lanes that are set in a mask, moved together. GCC copies the tables of Highway's own Compress to the stack on
// every call, so that only targets with an instruction for it use that. No member holds a mask, because those of SVE
// have no size.
template <typename DF>
class Kept {
 public:
  using Mask = hn::Mask<DF>;

#if HWY_MAX_BYTES <= 32 && !HWY_HAVE_SCALABLE
  HWY_INLINE Kept(DF df, Mask hit) {
    uint8_t bits[8] = {};
    hn::StoreMaskBits(df, hit, bits);
    places_ = kBytePlaces.place[bits[0]];
    count_ = kBytePlaces.count[bits[0]];
  }

  // Writes whole vectors. `hit` is that of the constructor.
  template <typename D>
  HWY_INLINE void Store(D d, Mask hit, hn::Vec<D> vector, hn::TFromD<D>* to) const {
    const auto places = hn::PromoteTo(hn::RebindToUnsigned<D>(), hn::LoadU(hn::Rebind<uint8_t, D>(), places_));
    hn::StoreU(hn::TableLookupLanes(vector, hn::IndicesFromVec(d, places)), d, to);
  }

 private:
  const uint8_t* places_;
#else
  HWY_INLINE Kept(DF df, Mask hit) : count_(static_cast<int64_t>(hn::CountTrue(df, hit))) {}

  template <typename D>
  HWY_INLINE void Store(D d, Mask hit, hn::Vec<D> vector, hn::TFromD<D>* to) const {
    hn::StoreU(hn::Compress(vector, hn::RebindMask(d, hit)), d, to);
  }

 private:
#endif
  int64_t count_;

 public:
  HWY_INLINE int64_t count() const { return count_; }
};

// 64 entries a step: which are hits is one word, whose few ones are written without a branch for each. Each step
// fetches the lines of one further step: all lines of a block at once would be more than the processor can wait for.
int64_t Collect(const float* values, const float* residual, float* sum, int64_t size, uint32_t first, int32_t positive,
                int32_t negative, uint32_t* kept_indices, float* kept_values) {
  const hn::CappedTag<float, 16> df;
  constexpr int64_t kStep = 64;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  const auto high = hn::Set(df, FloatFromBits(static_cast<uint32_t>(positive)));
  const auto low = hn::Set(df, -FloatFromBits(static_cast<uint32_t>(negative)));
  int64_t kept = 0;
  int64_t i = 0;
  for (; i + kStep <= size; i += kStep) {
    FetchAheadToRead(values + i, kStep * sizeof(float), residual == nullptr ? kFetchAhead : kFetchAheadOfTwo);
    if (residual != nullptr) FetchAheadToRead(residual + i, kStep * sizeof(float), kFetchAheadOfTwo);
    uint64_t inside = 0;
    for (int64_t lane = 0; lane < kStep; lane += lanes) {
      auto value = hn::LoadU(df, values + i + lane);
      if (residual != nullptr) {
        value = hn::Add(value, hn::LoadU(df, residual + i + lane));
        hn::StoreU(value, df, sum + i + lane);
      }
      // NaN is not inside.
      uint8_t bits[8] = {};
      hn::StoreMaskBits(df, hn::And(hn::Lt(value, high), hn::Gt(value, low)), bits);
      inside |= (bits[0] | uint64_t{bits[1]} << 8) << lane;
    }
    kept += scalar::StoreOnes(~inside, first + static_cast<uint32_t>(i), kept_indices + kept);
  }
  const bool adds = residual != nullptr;
  const float* const source = adds ? sum : values;
  for (int64_t j = 0; j < kept; ++j) kept_values[j] = source[kept_indices[j] - first];
  return kept + scalar::Collect(values + i, adds ? residual + i : nullptr, adds ? sum + i : nullptr, size - i,
                                first + static_cast<uint32_t>(i), positive, negative, kept_indices + kept,
                                kept_values + kept);
}

int64_t Filter(const uint32_t* indices, const float* values, int64_t size, KeyRule rule, uint32_t* kept_indices,
               float* kept_values) {
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::RebindToUnsigned<decltype(df)> du;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  const auto mask = hn::Set(di, static_cast<int32_t>(rule.mask));
  const auto flip = hn::Set(di, static_cast<int32_t>(rule.flip));
  const auto below = hn::Set(di, rule.bound - 1);
  int64_t kept = 0;
  int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const auto value = hn::LoadU(df, values + i);
    const auto index = hn::LoadU(du, indices + i);
    const auto hit = hn::RebindMask(df, hn::Gt(hn::Xor(hn::And(hn::BitCast(di, value), mask), flip), below));
    const Kept<decltype(df)> lanes_kept(df, hit);
    lanes_kept.Store(du, hit, index, kept_indices + kept);
    lanes_kept.Store(df, hit, value, kept_values + kept);
    kept += lanes_kept.count();
  }
  return kept + scalar::Filter(indices + i, values + i, size - i, rule, kept_indices + kept, kept_values + kept);
}

uint32_t MaxMagnitude(const float* values, int64_t size) {
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  const auto mask = hn::Set(di, 0x7fffffff);
  auto most = hn::Zero(di);
  int64_t i = 0;
  for (; i + lanes <= size; i += lanes) most = hn::Max(most, hn::And(hn::BitCast(di, hn::LoadU(df, values + i)), mask));
  const uint32_t of_vectors = static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(di, most)));
  return std::max(of_vectors, scalar::MaxMagnitude(values + i, size - i));
}

int64_t Between(const float* values, int64_t size, uint32_t low, uint32_t high, uint32_t* kept) {
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::RebindToUnsigned<decltype(df)> du;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  const auto mask = hn::Set(di, 0x7fffffff);
  const auto below = hn::Set(di, static_cast<int32_t>(low) - 1);
  const auto most = hn::Set(di, static_cast<int32_t>(high));
  int64_t count = 0;
  int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const auto magnitude = hn::And(hn::BitCast(di, hn::LoadU(df, values + i)), mask);
    const auto hit = hn::RebindMask(df, hn::AndNot(hn::Gt(magnitude, most), hn::Gt(magnitude, below)));
    const Kept<decltype(df)> lanes_kept(df, hit);
    lanes_kept.Store(du, hit, hn::BitCast(du, magnitude), kept + count);
    count += lanes_kept.count();
  }
  return count + scalar::Between(values + i, size - i, low, high, kept + count);
}

int64_t Nonzero(const uint32_t* words, int64_t size, uint32_t first, uint32_t* places) {
  const hn::ScalableTag<uint32_t> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto step = hn::Set(d, static_cast<uint32_t>(lanes));
  auto place = hn::Iota(d, first);
  int64_t found = 0;
  int64_t i = 0;
  for (; i + lanes <= size; i += lanes, place = hn::Add(place, step)) {
    const auto hit = hn::Ne(hn::LoadU(d, words + i), hn::Zero(d));
    const Kept<decltype(d)> kept(d, hit);
    kept.Store(d, hit, place, places + found);
    found += kept.count();
  }
  return found + scalar::Nonzero(words + i, size - i, first + static_cast<uint32_t>(i), places + found);
}

constexpr SelectKernels kKernels = {Collect, Filter, MaxMagnitude, Between, Nonzero};

#endif  // HWY_TARGET
}  // namespace

const SelectKernels* SelectKernelsOfTarget() { return &kKernels; }

}  // namespace HWY_NAMESPACE
}  // namespace terse
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace terse {

HWY_EXPORT(SelectKernelsOfTarget);

const SelectKernels& GetSelectKernels() {
  return ScalarInUse() ? scalar::kKernels : *HWY_DYNAMIC_DISPATCH(SelectKernelsOfTarget)();
}

}  // namespace terse
#endif  // HWY_ONCE
