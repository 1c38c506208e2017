// Compressed bytes for tests.
#ifndef TERSE_TESTS_LEARNING_GZIP_H_
#define TERSE_TESTS_LEARNING_GZIP_H_

#include <zlib.h>

#include <string>

namespace terse {

// `window_bits` as zlib has them: 15 + 16 is gzip, -15 a bare deflate stream.
inline std::string Gzip(const std::string& bytes, int window_bits = 15 + 16) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = bytes.size();
  stream.next_out = reinterpret_cast<Bytef*>(&out[0]);
  stream.avail_out = out.size();
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace terse

#endif  // TERSE_TESTS_LEARNING_GZIP_H_
