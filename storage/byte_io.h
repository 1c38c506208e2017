// Little-endian fields of fixed width for the file formats of storage/SCHEMA.md. Internal to storage/.
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

inline absl::string_view BytesOf(absl::Span<const float> values) {
  return absl::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

}  // namespace terse

#endif  // TERSE_STORAGE_BYTE_IO_H_
