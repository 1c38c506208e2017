// A text as it is and as gzip: packed once, sent many times.
#ifndef TERSE_WEB_PACKED_TEXT_H_
#define TERSE_WEB_PACKED_TEXT_H_

#include <cstddef>
#include <memory>
#include <string>

namespace terse {

struct PackedText {
  std::string plain;  // the text as it is
  std::string gzip;   // RFC 1952; empty where it would not be smaller

  size_t bytes() const { return plain.size() + gzip.size(); }  // that both hold in memory
};

std::shared_ptr<const PackedText> PackText(std::string text);  // packs only texts of 1,000 bytes to 1 GiB

}  // namespace terse

#endif  // TERSE_WEB_PACKED_TEXT_H_
