// Little-endian bits and words in byte strings: the vocabulary of every format in compression/FORMAT.md. Bit i of a
// stream is bit i % 8 (counting from the least significant) of byte i / 8.
#ifndef TERSE_COMPRESSION_BIT_STREAM_H_
#define TERSE_COMPRESSION_BIT_STREAM_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "compression/fetch_ahead.h"

namespace terse {

inline uint32_t FloatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float FloatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Float bits without the sign; NaN and infinity are those at or above kInfinityBits. Order is that of |value|.
inline uint32_t MagnitudeBits(uint32_t float_bits) { return float_bits & 0x7fffffffu; }
constexpr uint32_t kInfinityBits = 0x7f800000u;

// The word at `bytes`, least significant byte first.
template <typename Word>
Word LoadLittle(const char* bytes) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words lie in memory as they do in a stream");
  Word word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

template <typename Word>
void StoreLittle(Word word, char* bytes) {
  std::memcpy(bytes, &word, sizeof(word));
}

inline uint32_t LoadLittle32(const char* bytes) { return LoadLittle<uint32_t>(bytes); }
inline void StoreLittle32(uint32_t word, char* bytes) { StoreLittle(word, bytes); }
inline uint64_t LoadLittle64(const char* bytes) { return LoadLittle<uint64_t>(bytes); }
inline void StoreLittle64(uint64_t word, char* bytes) { StoreLittle(word, bytes); }

// Appends bits to a string. Not thread-safe. `out` must outlive the writer and is complete only after Finish.
class BitWriter {
 public:
  explicit BitWriter(std::string* out) : out_(out) {}

  // The `count` low bits of `value`, least significant first; 0 <= count <= 32 and value < 2^count.
  void Put(uint64_t value, int count) {
    word_ |= value << used_;
    used_ += count;
    if (used_ >= 32) {
      if (filled_ == sizeof(buffer_)) Flush();
      StoreLittle32(static_cast<uint32_t>(word_), buffer_ + filled_);
      filled_ += 4;
      word_ >>= 32;
      used_ -= 32;
    }
  }

  // Makes room for `count` more bits. Worth it before many of them: growing step by step touches fresh memory twice.
  void Reserve(int64_t count) {
    const size_t bytes = out_->size() + filled_ + static_cast<size_t>(count / 8) + 16;
    if (bytes > out_->capacity()) out_->reserve(std::max(bytes, 2 * out_->size()));
  }

  // The first `count` bits of `bytes`, of which whole groups of eight can be read. The bits behind them do not matter.
  void PutBits(const char* bytes, int64_t count) {
    Flush();
    if (used_ == 0) {
      FetchAheadToWrite(out_->data() + out_->size(), count / 8);
      out_->append(bytes, 8 * (count / 64));
      bytes += 8 * (count / 64);
      count %= 64;
    }
    const size_t at = out_->size();
    out_->resize(at + 8 * (count / 64));
    char* to = &(*out_)[at];
    for (; count >= 64; count -= 64, bytes += 8, to += 8) {
      const uint64_t word = LoadLittle64(bytes);
      StoreLittle64(word_ | word << used_, to);
      word_ = word >> 1 >> (63 - used_);
    }
    if (count == 0) return;
    const uint64_t word = LoadLittle64(bytes) & ((uint64_t{1} << count) - 1);
    Put(word & 0xffffffffu, static_cast<int>(std::min<int64_t>(count, 32)));
    if (count > 32) Put(word >> 32, static_cast<int>(count - 32));
  }

  // `value` zeros and a one.
  void PutUnary(uint64_t value) {
    for (; value >= 32; value -= 32) Put(0, 32);
    Put(uint64_t{1} << value, static_cast<int>(value) + 1);
  }

  // Pads with zeros to a whole byte.
  void Finish() {
    Flush();
    for (; used_ > 0; used_ -= 8, word_ >>= 8) out_->push_back(static_cast<char>(word_ & 0xff));
    used_ = 0;
  }

 private:
  void Flush() {
    out_->append(buffer_, filled_);
    filled_ = 0;
  }

  std::string* const out_;
  uint64_t word_ = 0;  // bits not yet in the buffer, the first in the lowest place
  int used_ = 0;       // how many; below 32 between calls
  size_t filled_ = 0;  // bytes of the buffer
  char buffer_[256];   // what is not yet in out_: a string is slow at taking four bytes at a time
};

// Reads bits of a string and never looks past its end. Not thread-safe; the bytes must outlive the reader. Copies are
// independent cursors.
class BitReader {
 public:
  BitReader() = default;
  explicit BitReader(absl::string_view bytes) : bytes_(bytes) {}

  // All of them, also those before the cursor.
  absl::string_view bytes() const { return bytes_; }
  uint64_t position() const { return position_; }
  uint64_t remaining() const { return uint64_t{8} * bytes_.size() - position_; }

  // False, with the cursor unmoved, when fewer than `count` bits remain.
  bool Skip(uint64_t count) {
    if (count > remaining()) return false;
    position_ += count;
    return true;
  }

  // The next `count` <= 32 bits. False, with the cursor unmoved, when fewer remain.
  bool Get(int count, uint32_t* value) {
    if (static_cast<uint64_t>(count) > remaining()) return false;
    *value = static_cast<uint32_t>(Window() & ((uint64_t{1} << count) - 1));
    position_ += count;
    return true;
  }

  // The number of zeros before the next one, which is consumed too. False when there is no further one.
  bool GetUnary(uint64_t* value) {
    uint64_t zeros = 0;
    while (remaining() > 0) {
      const uint64_t window = Window();
      if (window != 0) {
        const int run = __builtin_ctzll(window);
        position_ += run + 1;
        *value = zeros + run;
        return true;
      }
      const uint64_t seen = 64 - position_ % 8;
      const uint64_t step = seen < remaining() ? seen : remaining();
      position_ += step;
      zeros += step;
    }
    return false;
  }

  // Whether what remains is the padding of Finish: fewer than 8 bits, all zero.
  bool AtPaddedEnd() const { return remaining() == 0 || (remaining() < 8 && Window() == 0); }

  // The bits from the cursor on, at least kWindow of them, with zeros past the end.
  static constexpr int kWindow = 57;
  uint64_t Window() const { return WindowAt(position_); }
  // Those from `position` on, which may lie past the end.
  uint64_t WindowAt(uint64_t position) const {
    const uint64_t byte = position / 8;
    uint64_t word = 0;
    if (byte + 8 <= bytes_.size()) {
      std::memcpy(&word, bytes_.data() + byte, 8);
    } else if (byte < bytes_.size()) {
      std::memcpy(&word, bytes_.data() + byte, bytes_.size() - byte);
    }
    return word >> (position % 8);
  }

 private:
  absl::string_view bytes_;
  uint64_t position_ = 0;  // in bits, at most 8 * bytes_.size()
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_BIT_STREAM_H_
