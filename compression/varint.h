// Whole numbers in LEB128: seven bits a byte, least significant first, the high bit on all but the last. Internal to
// compression/; of FORMAT.md's downstream messages and bundles.
#ifndef TERSE_COMPRESSION_VARINT_H_
#define TERSE_COMPRESSION_VARINT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace terse {

// The most bytes of a varint for a number that fits int64.
inline constexpr int64_t kMaxVarintBytes = 9;

inline int64_t VarintBytes(uint64_t value) {
  int64_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

inline void PutVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Takes a shortest-form varint below 2^63 off the front. False when there is none.
inline bool TakeVarint(absl::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (size_t i = 0; i < bytes->size() && i < kMaxVarintBytes; ++i) {
    const uint8_t byte = static_cast<uint8_t>((*bytes)[i]);
    *value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes->remove_prefix(i + 1);
      return i == 0 || byte != 0;
    }
  }
  return false;
}

}  // namespace terse

#endif  // TERSE_COMPRESSION_VARINT_H_
