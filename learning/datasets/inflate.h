// Decompresses what zlib compressed, into memory that grows with what really comes out.
#ifndef TERSE_LEARNING_DATASETS_INFLATE_H_
#define TERSE_LEARNING_DATASETS_INFLATE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace terse {

enum class Compression {
  kGzip,     // RFC 1952, one member or several after one another; checksums are held against the contents
  kDeflate,  // RFC 1951, a bare stream, as in zip archives
};

struct Inflated {
  std::shared_ptr<const std::string> bytes;  // null when it failed
  int64_t offset = 0;                        // then: where in `compressed` it did
  std::string reason;                        // and why
};

// All of `compressed`; what is damaged, cut short, has bytes after its end or becomes more than `most` bytes fails.
Inflated Inflate(absl::string_view compressed, Compression compression, int64_t most);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_INFLATE_H_
