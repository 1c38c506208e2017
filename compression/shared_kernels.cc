#include "compression/shared_kernels.h"

#include <algorithm>
#include <limits>

#include "compression/bit_stream.h"
#include "compression/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/shared_kernels.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef TERSE_SHARED_KERNELS_SCALAR
#define TERSE_SHARED_KERNELS_SCALAR

namespace terse {
namespace {
namespace scalar {

// `sums_of_8(masses, sums)` makes the sums of kSumStep masses, eight by eight.
constexpr int64_t kSumStep = 64;

template <typename SumsOf8>
HWY_INLINE void SumWith(SumsOf8 sums_of_8, MassRun* run) {
  const int64_t padded = (run->count + kSumStep - 1) / kSumStep * kSumStep;
  std::fill(run->masses.begin() + run->count, run->masses.begin() + padded, uint8_t{0});
  int32_t sum = 0;
  run->sums[0] = 0;
  int32_t* to = run->sums.data() + 1;
  for (int64_t i = 0; i < padded; i += kSumStep) {
    uint64_t sums[kSumStep / MassRun::kGroup];
    sums_of_8(&run->masses[i], sums);
    for (uint64_t of_8 : sums) *to++ = sum += static_cast<int32_t>(of_8);
  }
  std::fill_n(to, MassRun::kLook, std::numeric_limits<int32_t>::max());
  run->total = sum;
}

struct SumsOf8 {
  HWY_INLINE void operator()(const uint8_t* masses, uint64_t* sums) const {
    for (int64_t i = 0; i < kSumStep / 8; ++i) {
      sums[i] = SumOfBytes(LoadLittle64(reinterpret_cast<const char*>(masses + 8 * i)));
    }
  }
};

HWY_INLINE void Sum(MassRun* run) { SumWith(SumsOf8(), run); }

// Counts how many of kLook sums are at most `wanted`.
struct CountUpTo {
  HWY_INLINE int64_t operator()(const int32_t* sums, int32_t wanted) const {
    int64_t count = 0;
    for (int64_t i = 0; i < MassRun::kLook; ++i) count += sums[i] <= wanted;
    return count;
  }
};

struct Place {
  int64_t index;   // of the element
  int32_t before;  // mass of the elements before it
};

// The element of a group of kGroup that has the slot `wanted`, which is below their sum. Sums of the masses up to each
// element in lanes of 16 bits, four elements a word; without branches, which would be guessed wrong.
HWY_INLINE Place FindInGroup(const uint8_t* group, uint32_t wanted) {
  constexpr uint64_t kOnes = 0x0001000100010001;
  constexpr uint64_t kTops = kOnes << 15;
  const uint64_t masses = LoadLittle64(reinterpret_cast<const char*>(group));
  const uint64_t odd = masses >> 8 & 0xff * kOnes;
  const uint64_t up_to_odd = ((masses & 0xff * kOnes) + odd) * kOnes;
  const uint64_t up_to_even = up_to_odd - odd;
  const uint64_t least = wanted * kOnes | kTops;
  const uint64_t odd_passed = (least - up_to_odd) & kTops;
  const uint64_t even_passed = (least - up_to_even) & kTops;
  const int passed = __builtin_popcountll(odd_passed | even_passed >> 1);
  const uint64_t before = passed % 2 == 1 ? up_to_even : up_to_odd << 16;
  return {passed, static_cast<int32_t>(before >> (passed / 2 * 16) & 0xffff)};
}

// The element from `from` on that has the slot `wanted` < run.total.
template <typename Count>
HWY_INLINE Place Find(Count count, const MassRun& run, int64_t from, int32_t wanted) {
  int64_t group = from / MassRun::kGroup;
  int64_t passed = count(&run.sums[group + 1], wanted);
  group += passed;
  while (HWY_UNLIKELY(passed == MassRun::kLook)) {
    passed = count(&run.sums[group + 1], wanted);
    group += passed;
  }
  const int32_t before = run.sums[group];
  const Place in_group = FindInGroup(&run.masses[group * MassRun::kGroup], static_cast<uint32_t>(wanted - before));
  return {group * MassRun::kGroup + in_group.index, before + in_group.before};
}

// The words that all lanes take from.
class Words {
 public:
  HWY_INLINE explicit Words(const SharedDecoding& decoding) : next_(decoding.words), end_(decoding.words_end) {}

  // Whether no more were taken than there are. Asked before kSharedPad of them can be.
  HWY_INLINE bool ok() const { return next_ <= end_; }
  const uint16_t* next() const { return next_; }

  HWY_INLINE uint32_t Refill(uint32_t state) {
    const bool takes = state < kSharedLowest;
    const uint32_t refilled = state << kSharedWordBits | *next_;
    next_ += takes;
    return takes ? refilled : state;
  }

 private:
  const uint16_t* next_;
  const uint16_t* const end_;
};

HWY_INLINE uint32_t PopWindows(const SharedDecoding& decoding, Words* words, uint32_t* state) {
  uint32_t windows = 0;
  while (true) {
    const uint32_t value = *state % kSharedScale;
    const uint32_t window = decoding.windows[value];
    const SharedInterval interval = decoding.model->windows[window];
    *state = words->Refill(interval.frequency * (*state >> kSharedScaleBits) + value - interval.begin);
    windows += window;
    if (HWY_LIKELY(window != kSharedWindows - 1) || !words->ok()) return windows;
  }
}

// The part of a lane that every position changes.
struct LaneState {
  uint32_t state;
  int64_t at;
  int64_t passed;
};

// One position of a lane.
template <typename Count>
HWY_INLINE SharedStop Step(Count count_up_to, const SharedDecoding& decoding, Words* words, SharedLane* lane,
                           LaneState* now, uint32_t* position) {
  const int slot_bits = decoding.model->slot_bits;
  uint32_t state = now->state;
  int64_t at = now->at;
  int64_t window = now->passed + (int64_t{PopWindows(decoding, words, &state)} << slot_bits);
  const uint32_t slot = state & ((1u << slot_bits) - 1);
  while (HWY_UNLIKELY(window + slot >= lane->run.total)) {
    window -= lane->run.total;
    at = 0;
    if (!decoding.next_run(decoding, lane)) return SharedStop::kPastTheEnd;
  }
  const Place place = Find(count_up_to, lane->run, at, static_cast<int32_t>(window + slot));
  if (HWY_UNLIKELY(place.before < window)) return SharedStop::kNoElement;
  const uint32_t mass = lane->run.masses[place.index];
  const uint32_t first = static_cast<uint32_t>(place.before - window);
  const uint32_t slots = std::min(mass, (1u << slot_bits) - first);
  *now = {words->Refill(slots * (state >> slot_bits) + slot - first), place.index + 1, place.before + mass};
  *position = static_cast<uint32_t>(lane->run.begin + place.index);
  return HWY_LIKELY(words->ok()) ? SharedStop::kDone : SharedStop::kEndsEarly;
}

template <int kLanes, typename Count>
HWY_INLINE SharedStop DecodeLanes(Count count_up_to, SharedDecoding* decoding, SharedLane* lanes, const int64_t* counts,
                                  uint32_t* const* positions) {
  static_assert(kLanes <= 2, "the steps below are written out");
  constexpr int kLast = kLanes - 1;
  Words words(*decoding);
  LaneState now[kLanes];
  for (int l = 0; l < kLanes; ++l) now[l] = {lanes[l].state, 0, 0};
  SharedStop stop = SharedStop::kDone;
  for (int64_t i = 0; i < counts[0]; ++i) {
    stop = Step(count_up_to, *decoding, &words, &lanes[0], &now[0], &positions[0][i]);
    if (HWY_UNLIKELY(stop != SharedStop::kDone)) return stop;
    if (kLanes == 1 || HWY_UNLIKELY(i >= counts[kLast])) continue;
    stop = Step(count_up_to, *decoding, &words, &lanes[kLast], &now[kLast], &positions[kLast][i]);
    if (HWY_UNLIKELY(stop != SharedStop::kDone)) return stop;
  }
  for (int l = 0; l < kLanes; ++l) {
    lanes[l].state = now[l].state;
    lanes[l].at = now[l].at;
  }
  decoding->words = words.next();
  return SharedStop::kDone;
}

template <typename Count>
HWY_INLINE SharedStop DecodeWith(Count count_up_to, SharedDecoding* decoding, int lanes, SharedLane* lane,
                                 const int64_t* counts, uint32_t* const* positions) {
  if (lanes == 1) return DecodeLanes<1>(count_up_to, decoding, lane, counts, positions);
  return DecodeLanes<kSharedMostLanes>(count_up_to, decoding, lane, counts, positions);
}

HWY_INLINE SharedStop Decode(SharedDecoding* decoding, int lanes, SharedLane* lane, const int64_t* counts,
                             uint32_t* const* positions) {
  return DecodeWith(CountUpTo(), decoding, lanes, lane, counts, positions);
}

constexpr SharedKernels kKernels = {Sum, Decode};

}  // namespace scalar
}  // namespace
}  // namespace terse

#endif  // TERSE_SHARED_KERNELS_SCALAR

HWY_BEFORE_NAMESPACE();
namespace terse {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

using scalar::kKernels;

#else
namespace hn = hwy::HWY_NAMESPACE;

struct SumsOf8 {
  inline void operator()(const uint8_t* masses, uint64_t* sums) const {
    const hn::CappedTag<uint8_t, scalar::kSumStep> d;
    const hn::Repartition<uint64_t, decltype(d)> d64;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < scalar::kSumStep; i += lanes) {
      hn::StoreU(hn::SumsOf8(hn::LoadU(d, masses + i)), d64, sums + i / 8);
    }
  }
};

void Sum(MassRun* run) { scalar::SumWith(SumsOf8(), run); }

struct CountUpTo {
  inline int64_t operator()(const int32_t* sums, int32_t wanted) const {
    const hn::CappedTag<int32_t, MassRun::kLook> d;
    const auto above = hn::Set(d, wanted + 1);
    int64_t count = 0;
    for (int64_t i = 0; i < MassRun::kLook; i += static_cast<int64_t>(hn::Lanes(d))) {
      count += static_cast<int64_t>(hn::CountTrue(d, hn::Lt(hn::LoadU(d, sums + i), above)));
    }
    return count;
  }
};

SharedStop Decode(SharedDecoding* decoding, int lanes, SharedLane* lane, const int64_t* counts,
                  uint32_t* const* positions) {
  return scalar::DecodeWith(CountUpTo(), decoding, lanes, lane, counts, positions);
}

constexpr SharedKernels kKernels = {Sum, Decode};

#endif  // HWY_TARGET
}  // namespace

const SharedKernels* SharedKernelsOfTarget() { return &kKernels; }

}  // namespace HWY_NAMESPACE
}  // namespace terse
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace terse {

HWY_EXPORT(SharedKernelsOfTarget);

const SharedKernels& GetSharedKernels() {
  return ScalarInUse() ? scalar::kKernels : *HWY_DYNAMIC_DISPATCH(SharedKernelsOfTarget)();
}

}  // namespace terse
#endif  // HWY_ONCE
