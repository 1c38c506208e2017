#include "compression/philox_kernels.h"

#include <algorithm>

#include "compression/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/philox_kernels.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef TERSE_PHILOX_KERNELS_SCALAR
#define TERSE_PHILOX_KERNELS_SCALAR

// Plain C++: a path of its own, and the blocks that do not fill a vector.
namespace terse {
namespace {
namespace scalar {

inline void Fill(const std::array<uint32_t, 4>& counter, const std::array<uint32_t, 2>& key, int64_t blocks,
                 uint32_t* words) {
  std::array<uint32_t, 4> at = counter;
  for (int64_t i = 0; i < blocks; ++i, ++at[0], words += 4) {
    const std::array<uint32_t, 4> block = PhiloxBlock(at, key);
    std::copy(block.begin(), block.end(), words);
  }
}

}  // namespace scalar
}  // namespace
}  // namespace terse

#endif  // TERSE_PHILOX_KERNELS_SCALAR

HWY_BEFORE_NAMESPACE();
namespace terse {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || HWY_HAVE_SCALABLE

using scalar::Fill;  // vectors without a size cannot be members

#else
namespace hn = hwy::HWY_NAMESPACE;

// A lane of 64 bits is a block. Each of its four words is the low half of such a lane in a vector of its own; what the
// high halves hold does not matter, because the multiplication and the store look at low halves only.
using D64 = hn::CappedTag<uint64_t, 8>;
using D32 = hn::Repartition<uint32_t, D64>;
using V64 = hn::Vec<D64>;

struct Blocks {
  V64 words[4];
};

HWY_INLINE V64 LowProduct(V64 a, V64 b) {
  const D32 d32;
  return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
}

// The high half of every lane in its low half. A shuffle, which does not wait for the unit that multiplies and shifts.
HWY_INLINE V64 HighHalf(V64 a) {
  const D64 d64;
  const D32 d32;
  return hn::BitCast(d64, hn::Shuffle2301(hn::BitCast(d32, a)));
}

HWY_INLINE void Round(const V64 (&multipliers)[2], const V64 (&key)[2], Blocks& at) {
  const V64 a = LowProduct(at.words[0], multipliers[0]);
  const V64 b = LowProduct(at.words[2], multipliers[1]);
  at.words[0] = hn::Xor3(HighHalf(b), at.words[1], key[0]);
  at.words[1] = b;
  at.words[2] = hn::Xor3(HighHalf(a), at.words[3], key[1]);
  at.words[3] = a;
}

// The low halves of `low` and `high` side by side in every lane.
HWY_INLINE V64 Pair(V64 low, V64 high) {
  const D64 d64;
  const D32 d32;
  return hn::BitCast(d64, hn::OddEven(hn::BitCast(d32, hn::ShiftLeft<32>(high)), hn::BitCast(d32, low)));
}

// The vectors that stay the same for all blocks.
struct Constants {
  V64 multipliers[2];
  V64 keys[kPhiloxRounds][2];
  V64 start[4];  // the counters of the first blocks
  int64_t lanes;
};

// Even lanes have the first half of a vector's blocks, odd lanes the second, each in order, so that the even lanes'
// words lie in front of the odd lanes' ones.
HWY_INLINE Constants MakeConstants(const std::array<uint32_t, 4>& counter, const std::array<uint32_t, 2>& key) {
  const D64 d64;
  Constants made;
  made.lanes = static_cast<int64_t>(hn::Lanes(d64));
  for (int i = 0; i < 2; ++i) made.multipliers[i] = hn::Set(d64, kPhiloxMultiplier[i]);
  for (uint32_t round = 0; round < kPhiloxRounds; ++round) {
    for (int i = 0; i < 2; ++i) made.keys[round][i] = hn::Set(d64, uint32_t{key[i] + round * kPhiloxWeyl[i]});
  }
  const V64 lane = hn::Iota(d64, 0);
  const V64 half = hn::Set(d64, static_cast<uint64_t>(made.lanes / 2));
  const V64 odd = hn::Sub(hn::Zero(d64), hn::And(lane, hn::Set(d64, 1)));
  made.start[0] = hn::Add(hn::Set(d64, counter[0]), hn::Add(hn::ShiftRight<1>(lane), hn::And(odd, half)));
  for (int i = 1; i < 4; ++i) made.start[i] = hn::Set(d64, counter[i]);
  return made;
}

// Writes kGroups vectors of blocks, the first of which is number `done`. Several at a time, because a round must wait
// for the one before.
template <int kGroups>
HWY_INLINE void Step(const Constants& constants, int64_t done, uint32_t* words) {
  const D64 d64;
  const D32 d32;
  Blocks at[kGroups];
  for (int g = 0; g < kGroups; ++g) {
    const V64 first = hn::Set(d64, static_cast<uint64_t>(done + g * constants.lanes));
    at[g] = {{hn::Add(constants.start[0], first), constants.start[1], constants.start[2], constants.start[3]}};
  }
  for (int round = 0; round < kPhiloxRounds; ++round) {
    for (int g = 0; g < kGroups; ++g) Round(constants.multipliers, constants.keys[round], at[g]);
  }
  for (int g = 0; g < kGroups; ++g, words += 4 * constants.lanes) {
    const V64 front = Pair(at[g].words[0], at[g].words[1]);
    const V64 back = Pair(at[g].words[2], at[g].words[3]);
    hn::StoreU(hn::BitCast(d32, hn::InterleaveLower(d64, front, back)), d32, words);
    hn::StoreU(hn::BitCast(d32, hn::InterleaveUpper(d64, front, back)), d32, words + 2 * constants.lanes);
  }
}

void Fill(const std::array<uint32_t, 4>& counter, const std::array<uint32_t, 2>& key, int64_t blocks, uint32_t* words) {
  constexpr int kGroups = 3;
  int64_t done = 0;
  if (const Constants constants = MakeConstants(counter, key); constants.lanes >= 2) {
    for (; done + kGroups * constants.lanes <= blocks; done += kGroups * constants.lanes) {
      Step<kGroups>(constants, done, words + 4 * done);
    }
    for (; done + constants.lanes <= blocks; done += constants.lanes) Step<1>(constants, done, words + 4 * done);
  }
  std::array<uint32_t, 4> rest = counter;
  rest[0] += static_cast<uint32_t>(done);
  scalar::Fill(rest, key, blocks - done, words + 4 * done);
}

#endif  // HWY_TARGET
}  // namespace

PhiloxKernel PhiloxKernelOfTarget() { return Fill; }

}  // namespace HWY_NAMESPACE
}  // namespace terse
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace terse {

HWY_EXPORT(PhiloxKernelOfTarget);

PhiloxKernel GetPhiloxKernel() { return ScalarInUse() ? scalar::Fill : HWY_DYNAMIC_DISPATCH(PhiloxKernelOfTarget)(); }

}  // namespace terse
#endif  // HWY_ONCE
