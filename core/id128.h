// 128-bit identifiers and hashes: update ids, run lineages, model hashes.
#ifndef TERSE_CORE_ID128_H_
#define TERSE_CORE_ID128_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace terse {

// A value type; all-zero means "none" wherever an id is optional (nothing hashes to zero in practice, and
// HashBytes maps that one value away).
struct Id128 {
  uint64_t high = 0;
  uint64_t low = 0;

  bool IsZero() const { return high == 0 && low == 0; }
  // 16 bytes, high word first, each word big-endian: the wire and database form.
  std::string ToBytes() const;
  // 32 lower-case hexadecimal digits, for people.
  std::string ToHex() const;
  // INVALID_ARGUMENT unless `bytes` has exactly 16 bytes (an empty string gives the zero id).
  static absl::StatusOr<Id128> FromBytes(absl::string_view bytes);
  // Returns a random id, from the operating system's generator.
  static Id128 Random();

  friend bool operator==(const Id128& a, const Id128& b) { return a.high == b.high && a.low == b.low; }
  friend bool operator!=(const Id128& a, const Id128& b) { return !(a == b); }
  friend bool operator<(const Id128& a, const Id128& b) { return a.high != b.high ? a.high < b.high : a.low < b.low; }
};

// XXH3-128 of the bytes; never the zero id. Guards against corruption and drift, not against an adversary.
Id128 HashBytes(absl::string_view bytes);
// The hash of the parts' bytes, one after the other.
Id128 HashBytes(absl::Span<const absl::string_view> parts);
// The hash of a model's weights: XXH3-128 over the little-endian float32 values.
Id128 HashWeights(absl::Span<const float> weights);

}  // namespace terse

#endif  // TERSE_CORE_ID128_H_
