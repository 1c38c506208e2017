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

HWY_INLINE uint64_t SumOfBytes(uint64_t bytes) {
  constexpr uint64_t kEven = 0x00ff00ff00ff00ff;
  return ((bytes & kEven) + (bytes >> 8 & kEven)) * 0x0001000100010001 >> 48;
}

// `sums_of_8(masses, sums)` makes the sums of kSumStep masses, eight by eight.
constexpr int64_t kSumStep = 64;

template <typename SumsOf8>
HWY_INLINE void SumWith(SumsOf8 sums_of_8, MassRun* run) {
  const int64_t padded = (run->count + kSumStep - 1) / kSumStep * kSumStep;
  std::fill(run->masses.begin() + run->count, run->masses.begin() + padded, uint8_t{0});
  int32_t sum = 0;
  int32_t* to = run->sums.data();
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

// How many of kLook sums are at most `wanted`.
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

// The element from `from` on that has the slot `wanted` < run.total. Mostly without branches, which would be guessed
// wrong.
template <typename Count>
HWY_INLINE Place Find(Count count, const MassRun& run, int64_t from, int32_t wanted) {
  int64_t group = from / MassRun::kGroup;
  int64_t passed = count(&run.sums[group], wanted);
  group += passed;
  while (passed == MassRun::kLook) {
    passed = count(&run.sums[group], wanted);
    group += passed;
  }
  Place place = {MassRun::kGroup * group, group == 0 ? 0 : run.sums[group - 1]};
  const uint8_t* const masses = &run.masses[place.index];
  int32_t sum = place.before;
  for (int64_t i = 0; i < MassRun::kGroup; ++i) {
    sum += masses[i];
    place.index += sum <= wanted;
    place.before = sum <= wanted ? sum : place.before;
  }
  return place;
}

class Decoder {
 public:
  HWY_INLINE explicit Decoder(SharedCursor* cursor)
      : cursor_(cursor), state_(cursor->state), words_(cursor->words), left_(cursor->words_left) {}
  HWY_INLINE ~Decoder() {
    cursor_->state = state_;
    cursor_->words = words_;
    cursor_->words_left = left_;
  }

  // Whether no more words were taken than there are. Asked before kSharedPad of them can be.
  HWY_INLINE bool ok() const { return left_ >= 0; }

  HWY_INLINE uint32_t PopWindows() {
    const SharedModel& model = *cursor_->model;
    uint32_t windows = 0;
    while (true) {
      const uint32_t value = state_ % kSharedScale;
      const uint32_t window = cursor_->windows[value];
      const SharedInterval interval = model.windows[window];
      state_ = interval.frequency * (state_ >> kSharedScaleBits) + value - interval.begin;
      Refill();
      windows += window;
      if (HWY_LIKELY(window != kSharedWindows - 1) || !ok()) return windows;
    }
  }

  HWY_INLINE uint32_t Slot(int slot_bits) const { return state_ & ((1u << slot_bits) - 1); }

  HWY_INLINE void PopSlot(int slot_bits, uint32_t slots, uint32_t offset) {
    state_ = slots * (state_ >> slot_bits) + offset;
    Refill();
  }

 private:
  HWY_INLINE void Refill() {
    const bool takes = state_ < kSharedLowest;
    state_ = takes ? state_ << kSharedWordBits | *words_ : state_;
    left_ -= takes;
    words_ += takes;
  }

  SharedCursor* const cursor_;
  uint32_t state_;
  const uint16_t* words_;
  int64_t left_;
};

template <typename Count>
HWY_INLINE SharedStop DecodeWith(Count count_up_to, SharedCursor* cursor, int64_t count, uint32_t* positions) {
  const MassRun& run = *cursor->run;
  const int slot_bits = cursor->model->slot_bits;
  Decoder decoder(cursor);
  for (; cursor->decoded < count; ++cursor->decoded) {
    if (!cursor->has_gap) {
      cursor->window = cursor->passed + (int64_t{decoder.PopWindows()} << slot_bits);
      cursor->slot = decoder.Slot(slot_bits);
      if (!decoder.ok()) return SharedStop::kEndsEarly;
    }
    const int64_t wanted = cursor->window + cursor->slot;
    cursor->has_gap = wanted >= run.total;
    if (cursor->has_gap) return SharedStop::kNeedsMasses;
    const Place place = Find(count_up_to, run, cursor->at, static_cast<int32_t>(wanted));
    if (place.before < cursor->window) return SharedStop::kNoElement;
    const uint32_t mass = run.masses[place.index];
    const uint32_t first = static_cast<uint32_t>(place.before - cursor->window);
    decoder.PopSlot(slot_bits, std::min(mass, (1u << slot_bits) - first), cursor->slot - first);
    if (!decoder.ok()) return SharedStop::kEndsEarly;
    cursor->at = place.index + 1;
    cursor->passed = place.before + mass;
    positions[cursor->decoded] = static_cast<uint32_t>(run.begin + place.index);
  }
  return SharedStop::kDone;
}

HWY_INLINE SharedStop Decode(SharedCursor* cursor, int64_t count, uint32_t* positions) {
  return DecodeWith(CountUpTo(), cursor, count, positions);
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

SharedStop Decode(SharedCursor* cursor, int64_t count, uint32_t* positions) {
  return scalar::DecodeWith(CountUpTo(), cursor, count, positions);
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
