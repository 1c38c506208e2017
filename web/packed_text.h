// A text as it is and as gzip: packed once, sent many times.
#ifndef TERSE_WEB_PACKED_TEXT_H_
#define TERSE_WEB_PACKED_TEXT_H_

#include <cstddef>
#include <memory>
#include <string>

namespace terse {

struct PackedText {
  std::string plain;
  std::string gzip;  // RFC 1952; empty where it would not be smaller

  size_t bytes() const { return plain.size() + gzip.size(); }
};

std::shared_ptr<const PackedText> PackText(std::string text);

}  // namespace terse

#endif  // TERSE_WEB_PACKED_TEXT_H_
