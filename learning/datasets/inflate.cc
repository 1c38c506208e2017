#include "learning/datasets/inflate.h"

#include <zlib.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

constexpr size_t kFirstGuess = size_t{1} << 16;
constexpr size_t kLargestPiece = size_t{1} << 30;  // zlib counts in 32 bits

// Owns zlib's state.
class Stream {
 public:
  Stream(absl::string_view compressed, Compression compression) : end_(compressed.data() + compressed.size()) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
    // 16 more than the window's bits means gzip; a number less than zero means a bare stream.
    usable_ = inflateInit2(&stream_, compression == Compression::kGzip ? 15 + 16 : -15) == Z_OK;
  }
  ~Stream() { inflateEnd(&stream_); }

  bool usable() const { return usable_; }
  const char* at() const { return reinterpret_cast<const char*>(stream_.next_in); }
  bool at_end() const { return at() == end_; }
  const char* message() const { return stream_.msg != nullptr ? stream_.msg : "not a compressed stream"; }
  bool NextMember() { return inflateReset(&stream_) == Z_OK; }

  // Writes up to `room` bytes to `out`, and how many to *written.
  int Run(char* out, size_t room, size_t* written) {
    const uInt asked = static_cast<uInt>(std::min(room, kLargestPiece));
    stream_.avail_in = static_cast<uInt>(std::min<size_t>(end_ - at(), kLargestPiece));
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = asked;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    *written = asked - stream_.avail_out;
    return code;
  }

 private:
  z_stream stream_{};
  const char* const end_;
  bool usable_ = false;
};

}  // namespace

Inflated Inflate(absl::string_view compressed, Compression compression, int64_t most) {
  Stream stream(compressed, compression);
  const auto failed = [&](std::string reason) {
    return Inflated{nullptr, stream.at() - compressed.data(), std::move(reason)};
  };
  if (!stream.usable()) return failed("zlib has no memory");
  auto out = std::make_shared<std::string>();
  size_t filled = 0;
  while (true) {
    // One byte of room beyond `most` shows that there is more.
    if (filled == out->size()) {
      if (filled > static_cast<size_t>(most)) return failed(absl::StrCat("it becomes more than ", most, " bytes"));
      out->resize(std::min<size_t>(most + 1, std::max(2 * filled, kFirstGuess)));
    }
    size_t written = 0;
    const int code = stream.Run(&(*out)[filled], out->size() - filled, &written);
    filled += written;
    if (code == Z_STREAM_END) {
      if (stream.at_end()) break;
      if (compression == Compression::kDeflate) return failed("bytes follow its end");
      if (!stream.NextMember()) return failed(stream.message());
    } else if (code == Z_BUF_ERROR && stream.at_end()) {
      return failed("it is cut short");
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return failed(stream.message());
    }
  }
  if (filled > static_cast<size_t>(most)) return failed(absl::StrCat("it becomes more than ", most, " bytes"));
  out->resize(filled);
  return {std::move(out), 0, ""};
}

}  // namespace terse
