#include "compression/rice.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "compression/bit_fields.h"
#include "compression/rice_kernels.h"

namespace terse {
namespace {

// 2^64 * T_c, rounded to nearest, for T_c = 1 - (phi - 1)^(2^(1-c)) and c = 1, 2, ...: b* >= c exactly when p < T_c
// (solve 1 + log2(log(phi - 1) / log(1 - p)) >= c for p). T_c is irrational, and no fraction with a denominator below
// 2^31 lies between T_c and its entry or on the entry (checked by continued fractions), so comparing with the entry is
// comparing with T_c. T_31 is below 2^-31 and thus below every p.
constexpr uint64_t kThresholds[] = {
    0x61c8864680b583ea, 0x36bec886d3972739, 0x1d046394e9ff6cb9, 0x0ef1de33523e0e02, 0x0795b2c1be81723f,
    0x03d226145bdcb0ac, 0x01eae9bbfa6f8dcf, 0x00f5eafbcc0ab17a, 0x007b13139122089c, 0x003d90f0fb04d313,
    0x001eca528320f02a, 0x000f659fca190c27, 0x0007b2ed8812d567, 0x0003d97e2ce78492, 0x0001ecc0f0aed98e,
    0x0000f660eee6a4b3, 0x00007b3095172e98, 0x00003d9851f49024, 0x00001ecc2ad48681, 0x00000f6615e0d2e3,
    0x000007b30b0e0d5b, 0x000003d9858e6fa8, 0x000001ecc2c91213, 0x000000f66164ff99, 0x0000007b30b29d70,
    0x0000003d98595621, 0x0000001ecc2caceb, 0x0000000f661656ec, 0x00000007b30b2b94, 0x00000003d98595d1,
};
constexpr int kMaxParameter = sizeof(kThresholds) / sizeof(kThresholds[0]);

// count / size < T_c
bool IsBelow(int64_t count, int64_t size, uint64_t threshold) {
  return (static_cast<__uint128_t>(count) << 64) < static_cast<__uint128_t>(threshold) * static_cast<uint64_t>(size);
}

// The largest count whose parameter is at least `parameter`.
int64_t LargestCount(int parameter, int64_t size) {
  if (parameter == 0) return size;
  const __uint128_t product = static_cast<__uint128_t>(kThresholds[parameter - 1]) * static_cast<uint64_t>(size);
  return static_cast<int64_t>((product - 1) >> 64);
}

constexpr int64_t kRun = 256;  // positions a step: all that belongs to them stays in the first-level cache

// Calls visit(gaps) for the gaps d - 1 of each run of positions.
template <typename Visit>
void ForEachRun(absl::Span<const uint32_t> positions, Visit visit) {
  uint32_t gaps[kRun];
  uint32_t next = 0;
  for (size_t begin = 0; begin < positions.size(); begin += kRun) {
    const absl::Span<const uint32_t> run = positions.subspan(begin, kRun);
    gaps[0] = run[0] - next;
    for (size_t i = 1; i < run.size(); ++i) gaps[i] = run[i] - run[i - 1] - 1;
    next = run.back() + 1;
    visit(absl::MakeConstSpan(gaps, run.size()));
  }
}

class RiceReader : public PositionReader {
 public:
  // The stream holds the remainders of all positions.
  RiceReader(int64_t count, int64_t size, int b, const BitReader& stream)
      : size_(size), b_(b), remainders_(stream), quotients_(stream) {
    quotients_.Skip(static_cast<uint64_t>(count) * b);
  }

  std::unique_ptr<PositionReader> Clone() const override { return std::make_unique<RiceReader>(*this); }

  absl::Status Next(absl::Span<uint32_t> positions) override {
    for (size_t begin = 0; begin < positions.size(); begin += kRun) {
      const absl::Status status = NextRun(positions.subspan(begin, kRun));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<BitReader> Finish() override { return quotients_; }

 private:
  static absl::Status PastTheEnd() {
    return absl::InvalidArgumentError("a position lies past the end of the tensor; both ends need the same model");
  }

  absl::Status NextRun(absl::Span<uint32_t> positions) {
    const int64_t count = static_cast<int64_t>(positions.size());
    uint32_t ones[kRun + kOnesPad];
    uint32_t remainders[kRun];
    const int skip = static_cast<int>(quotients_.position() % 8);
    const absl::Status status = FindOnes(count, skip, ones);
    if (!status.ok()) return status;
    GetFields(b_, absl::MakeSpan(remainders, count), &remainders_);
    const uint32_t last = ones[count - 1];
    const uint64_t zeros = last - skip - (count - 1);
    // Where bit `skip` of `ones` stands for position next_.
    const uint32_t base = static_cast<uint32_t>(next_ - (static_cast<uint64_t>(skip) << b_));
    // The remainders of a tensor add up to less than count * 2^b < size: equation (5) has 2^b < 0.97 / p.
    const uint32_t sum = GetRiceKernels().combine(ones, remainders, count, b_, base, positions.data());
    // Positions increase, so that only the last one can be too large, or first.
    next_ += (zeros << b_) + sum + count;
    if (next_ > static_cast<uint64_t>(size_)) return PastTheEnd();
    quotients_.Skip(last + 1 - skip);
    return absl::OkStatus();
  }

  // Looks no further than the tensor's end allows, so that places fit in 32 bits.
  absl::Status FindOnes(int64_t count, int skip, uint32_t* ones) const {
    const absl::string_view bytes = quotients_.bytes().substr(quotients_.position() / 8);
    const int64_t most_bits = skip + count + ((size_ - static_cast<int64_t>(next_)) >> b_);
    const int64_t most_bytes = (most_bits + 7) / 8;
    const int64_t size = std::min(static_cast<int64_t>(bytes.size()), most_bytes);
    if (GetRiceKernels().find_ones(bytes.data(), size, skip, count, ones) == count) return absl::OkStatus();
    if (size == most_bytes) return PastTheEnd();
    return absl::InvalidArgumentError("the message ends before its last position; send it whole");
  }

  int64_t size_;
  int b_;
  BitReader remainders_;
  BitReader quotients_;
  uint64_t next_ = 0;  // the lowest position that may come next
};

class Rice : public PositionCoder {
 public:
  absl::string_view name() const override { return "rice"; }

  int64_t Bits(absl::Span<const uint32_t> positions, int64_t size) const override {
    const int64_t count = static_cast<int64_t>(positions.size());
    const int b = RiceParameter(count, size);
    uint32_t quotients = 0;  // at most `size` in all
    ForEachRun(positions, [b, &quotients](absl::Span<const uint32_t> gaps) {
      for (uint32_t gap : gaps) quotients += gap >> b;
    });
    return count * (b + 1) + quotients;
  }

  int64_t MaxBits(int64_t count, int64_t size) const override { return RiceMaxBits(count, size); }

  void Put(absl::Span<const uint32_t> positions, int64_t size, BitWriter* writer) const override {
    const int64_t count = static_cast<int64_t>(positions.size());
    const int b = RiceParameter(count, size);
    const int64_t most_unary = count + (size >> b);
    writer->Reserve(count * b + most_unary);
    std::string unary(most_unary / 8 + 1 + kPackPad, '\0');
    uint32_t unary_bits = 0;
    ForEachRun(positions, [&](absl::Span<const uint32_t> gaps) {
      unary_bits = GetRiceKernels().pack_unary(gaps.data(), gaps.size(), b, &unary[0], unary_bits);
      PutFields(gaps, b, writer);
    });
    writer->PutBits(unary.data(), unary_bits);
  }

  absl::StatusOr<std::unique_ptr<PositionReader>> Open(int64_t count, int64_t size,
                                                       const BitReader& stream) const override {
    const int b = RiceParameter(count, size);
    if (stream.remaining() < static_cast<uint64_t>(count) * (b + 1)) {
      return absl::InvalidArgumentError(absl::StrCat("the message ends inside ", count, " positions; send it whole"));
    }
    return std::unique_ptr<PositionReader>(std::make_unique<RiceReader>(count, size, b, stream));
  }
};

}  // namespace

int RiceParameter(int64_t count, int64_t size) {
  int parameter = 0;
  while (parameter < kMaxParameter && IsBelow(count, size, kThresholds[parameter])) ++parameter;
  return parameter;
}

int64_t RiceMaxBits(int64_t count, int64_t size) {
  if (count == 0) return 0;
  int64_t most = 0;
  // For one parameter the cost grows with the count, so the largest count of each parameter is enough.
  for (int parameter = RiceParameter(count, size); parameter <= kMaxParameter; ++parameter) {
    const int64_t n = std::min(count, LargestCount(parameter, size));
    if (n < 1) break;
    most = std::max(most, n * (parameter + 1) + ((size - n) >> parameter));
  }
  return most;
}

const PositionCoder& RiceCoder() {
  static const Rice coder;
  return coder;
}

}  // namespace terse
