// Little-endian fields of fixed width, and varints, for the formats of storage/SCHEMA.md. Internal to storage/.
#ifndef TERSE_STORAGE_BYTE_IO_H_
#define TERSE_STORAGE_BYTE_IO_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/id128.h"

namespace terse {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "weights and integers are stored as they lie in memory");

template <typename T>
void PutField(std::string* out, T value) {
  static_assert(std::is_arithmetic_v<T>);
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}
inline void PutField(std::string* out, const Id128& id) { out->append(id.ToBytes()); }

// The caller has checked that `bytes` is long enough; the field is taken off its front.
template <typename T>
T TakeField(absl::string_view* bytes) {
  T value;
  if constexpr (std::is_same_v<T, Id128>) {
    value = Id128::FromBytes(bytes->substr(0, 16)).value_or(Id128{});
    bytes->remove_prefix(16);
  } else {
    static_assert(std::is_arithmetic_v<T>);
    std::memcpy(&value, bytes->data(), sizeof value);
    bytes->remove_prefix(sizeof value);
  }
  return value;
}

// Seven bits a byte, the lowest first; the top bit says that more follow.
inline void PutVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Takes a varint off the front of `bytes`; false when there is none whole, or its value is 2^63 or more.
inline bool TakeVarint(absl::string_view* bytes, int64_t* value) {
  *value = 0;
  for (size_t i = 0; i < bytes->size() && i < 9; ++i) {
    const auto byte = static_cast<uint8_t>((*bytes)[i]);
    *value |= static_cast<int64_t>(byte & 0x7f) << (7 * i);
    if (byte >= 0x80) continue;
    bytes->remove_prefix(i + 1);
    return true;
  }
  return false;
}

inline absl::string_view BytesOf(absl::Span<const float> values) {
  return absl::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

}  // namespace terse

#endif  // TERSE_STORAGE_BYTE_IO_H_
