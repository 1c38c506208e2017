#include "compression/rice_kernels.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "compression/bit_stream.h"
#include "compression/byte_places.h"
#include "compression/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/rice_kernels.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef TERSE_RICE_KERNELS_SCALAR
#define TERSE_RICE_KERNELS_SCALAR

// Plain C++. Inlined into every target's functions, so that these are compiled with that target's instructions too.
namespace terse {
namespace {
namespace scalar {

// Writes bits one after the other, without branches. Each time it writes eight bytes.
class BitPacker {
 public:
  static constexpr int kMostBits = 56;  // that fit in a word behind a started byte

  // Goes on at bit `bit` of `bytes`.
  BitPacker(char* bytes, uint32_t bit)
      : bytes_(bytes), to_(bytes + bit / 8), word_(bit % 8 == 0 ? 0 : static_cast<uint8_t>(*to_)), used_(bit % 8) {}

  // The `count` <= kMostBits low bits of `value`, which has no others.
  HWY_INLINE void Append(uint64_t value, uint32_t count) {
    word_ |= value << used_;
    StoreLittle64(word_, to_);
    const uint32_t end = used_ + count;
    to_ += end / 8;
    word_ >>= end & ~7u;
    used_ = end % 8;
  }

  // `value` zeros and a one, for any value; the zeros must be there already.
  HWY_INLINE void AppendUnary(uint32_t value) {
    *this = BitPacker(bytes_, bit() + value);
    Append(1, 1);
  }

  HWY_INLINE uint32_t bit() const { return static_cast<uint32_t>(8 * (to_ - bytes_)) + used_; }

 private:
  char* bytes_;
  char* to_;
  uint64_t word_;  // the bits of the byte at to_ that are written
  uint32_t used_;  // how many, below 8
};

// kTogether remainders are put together before they are appended.
template <int kTogether>
HWY_INLINE void PackTogether(const uint32_t* gaps, int64_t count, int width, char* bytes) {
  const uint64_t mask = (uint64_t{1} << width) - 1;
  BitPacker packer(bytes, 0);
  int64_t i = 0;
  for (; i + kTogether <= count; i += kTogether) {
    uint64_t together = 0;
    for (int j = kTogether; j-- > 0;) together = together << width | (gaps[i + j] & mask);
    packer.Append(together, kTogether * width);
  }
  for (; i < count; ++i) packer.Append(gaps[i] & mask, width);
}

HWY_INLINE void Pack(const uint32_t* gaps, int64_t count, int width, char* bytes) {
  if (8 * width <= BitPacker::kMostBits) {
    PackTogether<8>(gaps, count, width, bytes);
  } else if (4 * width <= BitPacker::kMostBits) {
    PackTogether<4>(gaps, count, width, bytes);
  } else {
    PackTogether<1>(gaps, count, width, bytes);
  }
}

HWY_INLINE uint32_t PackUnary(const uint32_t* gaps, int64_t count, int width, char* bytes, uint32_t bit) {
  constexpr int64_t kGroup = 8;  // codes that usually fit in a word together
  BitPacker packer(bytes, bit);
  int64_t i = 0;
  for (; i + kGroup <= count; i += kGroup) {
    uint64_t ones = 0;
    uint32_t length = 0;
    for (int64_t j = i; j < i + kGroup; ++j) {
      length += gaps[j] >> width;
      ones |= uint64_t{1} << (length % 64);
      ++length;
    }
    if (length <= BitPacker::kMostBits) {
      packer.Append(ones, length);
    } else {
      for (int64_t j = i; j < i + kGroup; ++j) packer.AppendUnary(gaps[j] >> width);
    }
  }
  for (; i < count; ++i) packer.AppendUnary(gaps[i] >> width);
  return packer.bit();
}

// The eight bytes at `bytes`, with zeros for those that are not among the `left`.
HWY_INLINE uint64_t LoadUpTo64(const char* bytes, int64_t left) {
  if (left >= 8) return LoadLittle64(bytes);
  char padded[8] = {};
  std::memcpy(padded, bytes, static_cast<size_t>(left));
  return LoadLittle64(padded);
}

// A byte's eight possible places, whether it has so many ones or not: a branch for each would often be guessed wrong.
struct StorePlaces {
  HWY_INLINE void operator()(uint32_t byte, uint32_t base, uint32_t* ones) const {
    for (int i = 0; i < 8; ++i) ones[i] = base + kBytePlaces.place[byte][i];
  }
};

template <typename Store>
HWY_INLINE int64_t FindOnesWith(Store store, const char* bytes, int64_t size, int skip, int64_t wanted,
                                uint32_t* ones) {
  int64_t found = 0;
  uint64_t keep = ~uint64_t{0} << skip;
  for (int64_t at = 0; at < size && found < wanted; at += 8) {
    const uint64_t word = LoadUpTo64(bytes + at, size - at) & keep;
    keep = ~uint64_t{0};
    if (word == 0) continue;
    for (int i = 0; i < 64; i += 8) {
      const uint32_t byte = static_cast<uint32_t>(word >> i & 0xff);
      store(byte, static_cast<uint32_t>(8 * at + i), ones + found);
      found += kBytePlaces.count[byte];
    }
  }
  return std::min(found, wanted);
}

HWY_INLINE int64_t FindOnes(const char* bytes, int64_t size, int skip, int64_t wanted, uint32_t* ones) {
  return FindOnesWith(StorePlaces(), bytes, size, skip, wanted, ones);
}

HWY_INLINE void Unpack(const char* bytes, uint64_t bit, int width, int64_t count, uint32_t* fields) {
  const uint64_t mask = (uint64_t{1} << width) - 1;
  for (int64_t i = 0; i < count; ++i, bit += width) {
    fields[i] = static_cast<uint32_t>(LoadLittle64(bytes + bit / 8) >> (bit % 8) & mask);
  }
}

HWY_INLINE uint32_t Combine(const uint32_t* ones, const uint32_t* remainders, int64_t count, int width, uint32_t base,
                            uint32_t* positions) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += remainders[i];
    const uint32_t place = static_cast<uint32_t>(i);
    positions[i] = base + ((ones[i] - place) << width) + sum + place;
  }
  return sum;
}

constexpr RiceKernels kKernels = {Pack, PackUnary, FindOnes, Unpack, Combine};

}  // namespace scalar
}  // namespace
}  // namespace terse

#endif  // TERSE_RICE_KERNELS_SCALAR

HWY_BEFORE_NAMESPACE();
namespace terse {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

using scalar::kKernels;

#else
namespace hn = hwy::HWY_NAMESPACE;

void Pack(const uint32_t* gaps, int64_t count, int width, char* bytes) { scalar::Pack(gaps, count, width, bytes); }

uint32_t PackUnary(const uint32_t* gaps, int64_t count, int width, char* bytes, uint32_t bit) {
  return scalar::PackUnary(gaps, count, width, bytes, bit);
}

int64_t FindOnes(const char* bytes, int64_t size, int skip, int64_t wanted, uint32_t* ones) {
  return scalar::FindOnes(bytes, size, skip, wanted, ones);
}

// Four fields at a time are shifted out of one word, where they fit in one behind a started byte.
void Unpack(const char* bytes, uint64_t bit, int width, int64_t count, uint32_t* fields) {
  const hn::CappedTag<uint64_t, 4> d64;
  const hn::Repartition<uint32_t, decltype(d64)> d32;
  int64_t i = 0;
  if (hn::Lanes(d64) == 4 && 4 * width <= 64 - 7) {
    const uint64_t first[4] = {0, uint64_t(width), 2 * uint64_t(width), 3 * uint64_t(width)};
    const auto shifts = hn::LoadU(d64, first);
    const auto mask = hn::Set(d64, (uint64_t{1} << width) - 1);
    const auto four = [&](uint64_t at) HWY_ATTR {
      const auto word = hn::Set(d64, LoadLittle64(bytes + at / 8));
      return hn::BitCast(d32, hn::And(hn::Shr(word, hn::Add(shifts, hn::Set(d64, at % 8))), mask));
    };
    for (; i + 8 <= count; i += 8, bit += 8 * width) {
      hn::StoreU(hn::ConcatEven(d32, four(bit + 4 * width), four(bit)), d32, fields + i);
    }
  }
  scalar::Unpack(bytes, bit, width, count - i, fields + i);
}

uint32_t Combine(const uint32_t* ones, const uint32_t* remainders, int64_t count, int width, uint32_t base,
                 uint32_t* positions) {
  const hn::CappedTag<uint32_t, 4> d;
  int64_t i = 0;
  auto sum = hn::Zero(d);
  if (hn::Lanes(d) == 4) {
    // base + i - (i << width)
    const auto place = hn::Iota(d, 0);
    auto line = hn::Sub(hn::Add(hn::Set(d, base), place), hn::ShiftLeftSame(place, width));
    const auto step = hn::Set(d, 4u - (4u << width));
    for (; i + 4 <= count; i += 4) {
      auto part = hn::LoadU(d, remainders + i);
      part = hn::Add(part, hn::ShiftLeftLanes<1>(d, part));
      part = hn::Add(part, hn::ShiftLeftLanes<2>(d, part));
      sum = hn::Add(sum, part);
      const auto zeros = hn::ShiftLeftSame(hn::LoadU(d, ones + i), width);
      hn::StoreU(hn::Add(hn::Add(zeros, line), sum), d, positions + i);
      sum = hn::Broadcast<3>(sum);
      line = hn::Add(line, step);
    }
  }
  const uint32_t so_far = hn::GetLane(sum);
  const uint32_t place = static_cast<uint32_t>(i);
  const uint32_t rest = base + so_far + place - (place << width);
  return so_far + scalar::Combine(ones + i, remainders + i, count - i, width, rest, positions + i);
}

constexpr RiceKernels kKernels = {Pack, PackUnary, FindOnes, Unpack, Combine};

#endif  // HWY_TARGET
}  // namespace

const RiceKernels* RiceKernelsOfTarget() { return &kKernels; }

}  // namespace HWY_NAMESPACE
}  // namespace terse
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace terse {

HWY_EXPORT(RiceKernelsOfTarget);

const RiceKernels& GetRiceKernels() {
  return ScalarInUse() ? scalar::kKernels : *HWY_DYNAMIC_DISPATCH(RiceKernelsOfTarget)();
}

}  // namespace terse
#endif  // HWY_ONCE
