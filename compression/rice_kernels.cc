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

// Fields that are whole little-endian words.
template <typename Word>
HWY_INLINE void PackWords(const uint32_t* HWY_RESTRICT gaps, int64_t count, char* HWY_RESTRICT bytes) {
  for (int64_t i = 0; i < count; ++i) StoreLittle(static_cast<Word>(gaps[i]), bytes + i * sizeof(Word));
}

template <typename Word>
HWY_INLINE void UnpackWords(const char* HWY_RESTRICT bytes, int64_t count, uint32_t* HWY_RESTRICT fields) {
  for (int64_t i = 0; i < count; ++i) fields[i] = LoadLittle<Word>(bytes + i * sizeof(Word));
}

// Packs fields of a width of whole words; false for other widths.
HWY_INLINE bool PackedWords(const uint32_t* gaps, int64_t count, int width, char* bytes) {
  if (width == 32) PackWords<uint32_t>(gaps, count, bytes);
  if (width == 16) PackWords<uint16_t>(gaps, count, bytes);
  if (width == 8) PackWords<uint8_t>(gaps, count, bytes);
  return width % 8 == 0 && width != 24;
}

// Unpacks fields of such a width that begin with a byte; false for others.
HWY_INLINE bool UnpackedWords(const char* bytes, uint64_t bit, int width, int64_t count, uint32_t* fields) {
  if (bit % 8 != 0) return false;
  if (width == 32) UnpackWords<uint32_t>(bytes + bit / 8, count, fields);
  if (width == 16) UnpackWords<uint16_t>(bytes + bit / 8, count, fields);
  if (width == 8) UnpackWords<uint8_t>(bytes + bit / 8, count, fields);
  return width % 8 == 0 && width != 24;
}

HWY_INLINE void Pack(const uint32_t* gaps, int64_t count, int width, char* bytes) {
  if (PackedWords(gaps, count, width, bytes)) return;
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

HWY_INLINE void Unpack(const char* bytes, int64_t size, uint64_t bit, int width, int64_t count, uint32_t* fields) {
  if (UnpackedWords(bytes, bit, width, count, fields)) return;
  const uint64_t mask = (uint64_t{1} << width) - 1;
  for (int64_t i = 0; i < count; ++i, bit += width) {
    const int64_t byte = static_cast<int64_t>(bit / 8);
    fields[i] = static_cast<uint32_t>(LoadUpTo64(bytes + byte, size - byte) >> (bit % 8) & mask);
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

// Where the fields of one width lie that begin at a bit of a byte: the four bytes in which field j begins, among the 16
// from that byte on, and the bit at which it begins there. It says nothing of fields that do not lie in the 16.
struct FieldPlaces {
  uint8_t bytes[64];
  uint8_t shift[16];
};
constexpr int kMostVectorWidth = 15;

constexpr FieldPlaces MakeFieldPlaces(int width, int skip) {
  FieldPlaces places = {};
  for (int field = 0; field < 16; ++field) {
    const int first = skip + field * width;
    for (int j = 0; j < 4; ++j) places.bytes[4 * field + j] = static_cast<uint8_t>(std::min(first / 8 + j, 15));
    places.shift[field] = static_cast<uint8_t>(first % 8);
  }
  return places;
}

struct AllFieldPlaces {
  FieldPlaces of[kMostVectorWidth + 1][8];  // by width and first bit
};

constexpr AllFieldPlaces MakeAllFieldPlaces() {
  AllFieldPlaces all = {};
  for (int width = 1; width <= kMostVectorWidth; ++width) {
    for (int skip = 0; skip < 8; ++skip) all.of[width][skip] = MakeFieldPlaces(width, skip);
  }
  return all;
}

alignas(64) constexpr AllFieldPlaces kFieldPlaces = MakeAllFieldPlaces();

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

// Fields of one bit: a mask of lanes is them. Returns how many there are of them, whole bytes.
int64_t PackBits(const uint32_t* gaps, int64_t count, char* bytes) {
  const hn::CappedTag<uint32_t, 8> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint32_t byte = 0;
    for (int64_t lane = 0; lane < 8; lane += lanes) {
      uint8_t bits[8] = {};
      hn::StoreMaskBits(d, hn::TestBit(hn::LoadU(d, gaps + i + lane), one), bits);
      byte |= static_cast<uint32_t>(bits[0]) << lane;
    }
    bytes[i / 8] = static_cast<char>(byte);
  }
  return i;
}

// Whole vectors of narrow fields: neighbours are shifted together, first two in a lane of 64 bits, then two such lanes.
void PackNarrow(const uint32_t* gaps, int64_t count, int width, char* bytes) {
  const hn::CappedTag<uint32_t, 16> d32;
  const hn::RepartitionToWide<decltype(d32)> d64;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d32));
  const auto mask = hn::Set(d32, (uint32_t{1} << width) - 1);
  const auto both = hn::Set(d64, (uint64_t{1} << (2 * width)) - 1);
  scalar::BitPacker packer(bytes, 0);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto fields = hn::BitCast(d64, hn::And(hn::LoadU(d32, gaps + i), mask));
    const auto two = hn::And(hn::Or(fields, hn::ShiftRightSame(fields, 32 - width)), both);
    const auto four = hn::Or(two, hn::ShiftLeftSame(hn::Shuffle01(two), 2 * width));
    uint64_t stored[8];
    hn::StoreU(four, d64, stored);
    for (int64_t j = 0; j < lanes / 2; j += 4) packer.Append(stored[j] | stored[j + 2] << (4 * width), 8 * width);
  }
  for (; i < count; ++i) packer.Append(gaps[i] & ((uint32_t{1} << width) - 1), width);
}

void Pack(const uint32_t* gaps, int64_t count, int width, char* bytes) {
  if (width == 1) {
    const int64_t whole = PackBits(gaps, count, bytes);
    scalar::Pack(gaps + whole, count - whole, width, bytes + whole / 8);
  } else if (hn::Lanes(hn::CappedTag<uint32_t, 8>()) == 8 && 8 * width <= scalar::BitPacker::kMostBits) {
    PackNarrow(gaps, count, width, bytes);
  } else {
    scalar::Pack(gaps, count, width, bytes);
  }
}

uint32_t PackUnary(const uint32_t* gaps, int64_t count, int width, char* bytes, uint32_t bit) {
  return scalar::PackUnary(gaps, count, width, bytes, bit);
}

int64_t FindOnes(const char* bytes, int64_t size, int skip, int64_t wanted, uint32_t* ones) {
  return scalar::FindOnes(bytes, size, skip, wanted, ones);
}

// A vector of fields at a time, where they lie in 16 bytes and the next vector's begin at the same bit of a byte: every
// lane gets the four bytes where its field begins. Returns how many there are of them.
template <typename D>
int64_t UnpackVectors(D d32, const char* bytes, int64_t size, uint64_t bit, int width, int64_t count,
                      uint32_t* fields) {
  const hn::Repartition<uint8_t, D> d8;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d32));
  if (lanes < 8 || lanes * width > 128 - 7) return 0;
  const scalar::FieldPlaces& at = scalar::kFieldPlaces.of[width][bit % 8];
  const auto places = hn::LoadU(d8, at.bytes);
  const auto shifts = hn::PromoteTo(d32, hn::LoadU(hn::Rebind<uint8_t, D>(), at.shift));
  const auto mask = hn::Set(d32, (uint32_t{1} << width) - 1);
  const int64_t step = lanes * width / 8;
  int64_t from = static_cast<int64_t>(bit / 8);
  int64_t i = 0;
  for (; i + lanes <= count && from + 16 <= size; i += lanes, from += step) {
    const auto* const first = reinterpret_cast<const uint8_t*>(bytes) + from;
    const auto four = hn::BitCast(d32, hn::TableLookupBytes(hn::LoadDup128(d8, first), places));
    hn::StoreU(hn::And(hn::Shr(four, shifts), mask), d32, fields + i);
  }
  return i;
}

// Narrow fields as many at a time as the target's vectors hold, wider ones eight.
void Unpack(const char* bytes, int64_t size, uint64_t bit, int width, int64_t count, uint32_t* fields) {
  const hn::CappedTag<uint32_t, 16> d16;
  const hn::CappedTag<uint32_t, 8> d8;
  int64_t done = 0;
  if (width % 8 != 0 || bit % 8 != 0) {
    done = UnpackVectors(d16, bytes, size, bit, width, count, fields);
    if (done == 0) done = UnpackVectors(d8, bytes, size, bit, width, count, fields);
  }
  scalar::Unpack(bytes, size, bit + static_cast<uint64_t>(done) * width, width, count - done, fields + done);
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
