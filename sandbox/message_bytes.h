// Plain structures as bytes and back, between two processes of one program. Internal to sandbox.
#ifndef TERSE_SANDBOX_MESSAGE_BYTES_H_
#define TERSE_SANDBOX_MESSAGE_BYTES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "trainer/message_fields.h"

namespace terse {

class MessageWriter {
 public:
  template <typename... T>
  void operator()(const char* /*names*/, T&... values) {
    (Put(values), ...);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <typename T>
  void Put(T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else if constexpr (std::is_same_v<T, std::string> || IsVector<T>::value) {
      uint64_t size = value.size();
      Put(size);
      if constexpr (IsVector<T>::value) {
        for (auto& element : value) Put(element);
      } else {
        bytes_.append(value);
      }
    } else {
      Fields(*this, value);
    }
  }

  std::string bytes_;
};

// Reads bytes that anybody may have written, and takes no more memory than a small multiple of their number.
class MessageReader {
 public:
  explicit MessageReader(absl::string_view bytes) : bytes_(bytes) {}
  template <typename... T>
  void operator()(const char* /*names*/, T&... values) {
    (Get(values), ...);
  }
  // Whether the bytes held everything that was read, and nothing else.
  bool complete() const { return ok_ && bytes_.empty(); }

 private:
  template <typename T>
  void Get(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte = 0;
      Get(byte);
      ok_ = ok_ && byte <= 1;
      value = byte == 1;
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      if (!Has(sizeof value)) return;
      std::memcpy(&value, bytes_.data(), sizeof value);
      bytes_.remove_prefix(sizeof value);
    } else if constexpr (std::is_same_v<T, std::string> || IsVector<T>::value) {
      uint64_t size = 0;
      Get(size);
      if (!Has(size)) return;  // an element has at least one byte
      if constexpr (IsVector<T>::value) {
        value.clear();
        for (uint64_t i = 0; ok_ && i < size; ++i) Get(value.emplace_back());
      } else {
        value.assign(bytes_.data(), size);
        bytes_.remove_prefix(size);
      }
    } else {
      Fields(*this, value);
    }
  }
  bool Has(uint64_t size) { return ok_ = ok_ && size <= bytes_.size(); }

  absl::string_view bytes_;
  bool ok_ = true;
};

template <typename T>
std::string EncodeMessage(T value) {
  MessageWriter writer;
  writer("", value);
  return writer.Take();
}

// False, and an unspecified value, when `bytes` are not those of a T.
template <typename T>
bool DecodeMessage(absl::string_view bytes, T* value) {
  MessageReader reader(bytes);
  reader("", *value);
  return reader.complete();
}

}  // namespace terse

#endif  // TERSE_SANDBOX_MESSAGE_BYTES_H_
