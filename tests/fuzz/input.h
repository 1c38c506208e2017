// The bytes of one fuzzing run, taken from the front, and what ends a run that shows a fault.
#ifndef TERSE_TESTS_FUZZ_INPUT_H_
#define TERSE_TESTS_FUZZ_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/bit_stream.h"

namespace terse {

// Ends the process, which the fuzzer reports with the input, unless `condition` holds.
inline void Require(bool condition, absl::string_view what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : bytes_(reinterpret_cast<const char*>(data), size) {}

  // The next byte; 0 behind the end.
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const uint8_t byte = static_cast<uint8_t>(bytes_[0]);
    bytes_.remove_prefix(1);
    return byte;
  }

  // The next bytes, least significant first.
  uint32_t Word16() {
    const uint32_t low = Byte();
    return low | uint32_t{Byte()} << 8;
  }
  uint32_t Word32() {
    const uint32_t low = Word16();
    return low | Word16() << 16;
  }
  uint64_t Word64() {
    const uint64_t low = Word32();
    return low | uint64_t{Word32()} << 32;
  }

  // The next `size` bytes, or as many as there are.
  absl::string_view Take(size_t size) {
    const absl::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(taken.size());
    return taken;
  }

  bool empty() const { return bytes_.empty(); }

  // Returns all that is left.
  absl::string_view Rest() { return Take(bytes_.size()); }

 private:
  absl::string_view bytes_;
};

inline std::vector<uint32_t> FloatsAsBits(absl::Span<const float> values) {
  std::vector<uint32_t> bits;
  bits.reserve(values.size());
  for (float value : values) bits.push_back(FloatBits(value));
  return bits;
}

inline bool IsFinite(float value) { return MagnitudeBits(FloatBits(value)) < kInfinityBits; }

inline bool AllFinite(absl::Span<const float> values) {
  for (float value : values) {
    if (!IsFinite(value)) return false;
  }
  return true;
}

// Numbers at their limits; one byte of a number pattern each.
constexpr uint32_t kSpecialBits[] = {
    0x00000000, 0x80000000,  // zeros
    0x00000001, 0x80000001,  // the smallest denormals
    0x007fffff, 0x807fffff,  // the largest ones
    0x00800000, 0x80800000,  // the smallest normal numbers
    0x7f7fffff, 0xff7fffff,  // the largest ones
    0x3f800000, 0xbf800000,  // 1 and -1
    0x3e800000,              // 0.25
    0x7f800000, 0xff800000,  // infinities
    0x7fc00001,              // NaN
};

// `count` numbers from a pattern that is repeated as often as needed: a byte below 16 is a special number, any other
// one the top of a float32 whose lower bytes follow. If `finite`, NaN and infinity become the largest numbers.
inline std::vector<float> Numbers(absl::string_view pattern, size_t count, bool finite) {
  size_t at = 0;
  const auto next = [&pattern, &at]() -> uint32_t {
    return pattern.empty() ? 0 : static_cast<uint8_t>(pattern[at++ % pattern.size()]);
  };
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    const uint32_t top = next();
    uint32_t bits = top < 16 ? kSpecialBits[top] : top << 24;
    if (top >= 16) {
      bits |= next() << 16;
      bits |= next() << 8;
      bits |= next();
    }
    if (finite && MagnitudeBits(bits) >= kInfinityBits) bits = (bits & 0x80000000u) | (kInfinityBits - 1);
    number = FloatFromBits(bits);
  }
  return numbers;
}

}  // namespace terse

#endif  // TERSE_TESTS_FUZZ_INPUT_H_
