#include "compression/golomb.h"

#include <algorithm>

#include "compression/gap_code.h"

namespace terse {
namespace {

constexpr char kGolombName[] = "golomb";

struct Golomb {
  explicit Golomb(int64_t parameter)
      : m(static_cast<uint32_t>(parameter)),
        width(31 - __builtin_clz(m)),
        short_ones((uint32_t{2} << width) - m),
        shift(32 + width),
        reciprocal(((uint64_t{1} << shift) + m - 1) / m) {}

  // zeros / m, for zeros < 2^31, by a multiplication: the product with `reciprocal`, which is at most 2^32, is too
  // large by less than 1 / m of a quotient.
  uint32_t Quotient(uint32_t zeros) const { return static_cast<uint32_t>(zeros * reciprocal >> shift); }

  uint32_t m;
  int width;            // of the fixed part of a remainder
  uint32_t short_ones;  // u: fixed parts below it are the whole remainder
  int shift;
  uint64_t reciprocal;  // 2^shift / m, rounded up
};

struct Remainder {
  Remainder(const Golomb& code, uint32_t r)
      : is_long(r >= code.short_ones),
        fixed(is_long ? (r + code.short_ones) >> 1 : r),
        last((r + code.short_ones) & 1) {}

  bool is_long;
  uint32_t fixed;
  uint32_t last;  // meaningful for long ones
};

class GolombSource {
 public:
  GolombSource(const Golomb& code, int64_t size, const BitReader& fixed, const BitReader& quotients)
      : code_(code), most_(static_cast<uint64_t>(size) / code.m), fixed_(fixed), quotients_(quotients) {}

  absl::Status Zeros(absl::Span<uint32_t> zeros) {
    const Golomb code = code_;
    BitReader fixed = fixed_, quotients = quotients_;
    for (uint32_t& gap : zeros) {
      uint64_t q;
      uint32_t r, last;
      if (!quotients.GetUnary(&q) || !fixed.Get(code.width, &r)) return PositionsEndEarly(kGolombName);
      if (q > most_) return PositionPastTheEnd(kGolombName);
      if (r >= code.short_ones) {
        if (!quotients.Get(1, &last)) return PositionsEndEarly(kGolombName);
        r = 2 * r + last - code.short_ones;
      }
      gap = static_cast<uint32_t>(q) * code.m + r;  // below size + M
    }
    fixed_ = fixed;
    quotients_ = quotients;
    return absl::OkStatus();
  }

  absl::StatusOr<BitReader> Finish() { return quotients_; }

 private:
  Golomb code_;
  uint64_t most_;  // the largest quotient below `size`
  BitReader fixed_;
  BitReader quotients_;
};

class GolombPositions final : public PositionCoder {
 public:
  absl::string_view name() const override { return kGolombName; }

  int64_t Bits(absl::Span<const uint32_t> positions, int64_t size) const override {
    const Golomb code(GolombParameter(positions.size(), size));
    int64_t bits = static_cast<int64_t>(positions.size()) * (code.width + 1);
    ForEachGap(positions, [&](uint32_t zeros) {
      const uint32_t q = code.Quotient(zeros);
      bits += q + static_cast<uint32_t>(zeros - q * code.m >= code.short_ones);
    });
    return bits;
  }

  // Counts from `low` to `high` have a parameter between theirs; each range is bounded by its worst ends.
  int64_t MaxBits(int64_t count, int64_t size) const override {
    int64_t most = 0;
    for (int64_t high = count; high >= 1; high /= 2) {
      const int64_t low = high / 2 + 1;
      const Golomb widest(GolombParameter(low, size));
      most = std::max(most, high * (widest.width + 2) + (size - low) / GolombParameter(high, size));
    }
    return most;
  }

  void Put(absl::Span<const uint32_t> positions, int64_t size, BitWriter* writer) const override {
    const Golomb code(GolombParameter(positions.size(), size));
    ForEachGap(positions, [&](uint32_t zeros) {
      writer->Put(Remainder(code, zeros - code.Quotient(zeros) * code.m).fixed, code.width);
    });
    ForEachGap(positions, [&](uint32_t zeros) {
      const uint32_t quotient = code.Quotient(zeros);
      writer->PutUnary(quotient);
      const Remainder remainder(code, zeros - quotient * code.m);
      if (remainder.is_long) writer->Put(remainder.last, 1);
    });
  }

  absl::StatusOr<std::unique_ptr<PositionReader>> Open(int64_t count, int64_t size,
                                                       const BitReader& stream) const override {
    const Golomb code(GolombParameter(count, size));
    BitReader quotients = stream;
    if (!quotients.Skip(static_cast<uint64_t>(count) * code.width)) return PositionsEndEarly(kGolombName);
    return std::make_unique<GapReader<GolombSource>>(GolombSource(code, size, stream, quotients), size, kGolombName);
  }
};

}  // namespace

int64_t GolombParameter(int64_t count, int64_t size) {
  // With the sum S = 1 + Q and a power P in units of 2^-64: bit by bit, the largest m with S Q^m > 1; M = m + 1.
  constexpr int kBits = 31;
  constexpr __uint128_t kOne = static_cast<__uint128_t>(1) << 64;
  __uint128_t powers[kBits];
  powers[0] = (static_cast<__uint128_t>(size - count) << 64) / static_cast<uint64_t>(size);
  for (int i = 1; i < kBits; ++i) powers[i] = (powers[i - 1] * powers[i - 1]) >> 64;
  // S needs 65 bits; its half is kept, so that products fit 128.
  __uint128_t half = (kOne + powers[0]) >> 1;
  int64_t m = 0;
  for (int i = kBits - 1; i >= 0; --i) {
    const __uint128_t product = (half * powers[i]) >> 64;
    if (product <= kOne >> 1) continue;
    half = product;
    m += int64_t{1} << i;
  }
  return m + 1;
}

const PositionCoder& GolombCoder() {
  static const GolombPositions coder;
  return coder;
}

}  // namespace terse
