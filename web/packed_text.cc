#include "web/packed_text.h"

#include <zlib.h>

#include <utility>

namespace terse {
namespace {

// Returns an empty string on failure, which is one of memory: the plain text does as well.
std::string Gzip(const std::string& text) {
  constexpr int kGzipFormat = 16 + MAX_WBITS, kUsualMemory = 8, kLevel = 5;
  z_stream stream = {};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipFormat, kUsualMemory, Z_DEFAULT_STRATEGY) != Z_OK) return "";
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(&packed[0]);
  stream.avail_out = static_cast<uInt>(packed.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed.resize(whole ? stream.total_out : 0);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

std::shared_ptr<const PackedText> PackText(std::string text) {
  // A shorter text fits into one packet anyway; zlib does not take a longer one in one piece.
  constexpr size_t kLeast = 1000, kMost = size_t{1} << 30;
  auto packed = std::make_shared<PackedText>();
  if (text.size() >= kLeast && text.size() <= kMost) packed->gzip = Gzip(text);
  if (packed->gzip.size() >= text.size()) packed->gzip.clear();
  packed->plain = std::move(text);
  return packed;
}

}  // namespace terse
