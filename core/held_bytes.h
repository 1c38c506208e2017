// Bytes that somebody else keeps: in memory, or in a file that is mapped.
#ifndef TERSE_CORE_HELD_BYTES_H_
#define TERSE_CORE_HELD_BYTES_H_

#include "absl/strings/string_view.h"

namespace terse {

// The bytes stay where and as they are while the object lives. Immutable; thread-safe.
class HeldBytes {
 public:
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;
  virtual ~HeldBytes() = default;
  virtual absl::string_view bytes() const = 0;

 protected:
  HeldBytes() = default;
};

}  // namespace terse

#endif  // TERSE_CORE_HELD_BYTES_H_
