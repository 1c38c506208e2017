#include "compression/rice.h"

#include <algorithm>

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

void PutRiceRemainders(absl::Span<const uint32_t> positions, int parameter, BitWriter* writer) {
  const uint32_t mask = (uint32_t{1} << parameter) - 1;
  uint32_t next = 0;
  for (uint32_t position : positions) {
    writer->Put((position - next) & mask, parameter);
    next = position + 1;
  }
}

void PutRiceQuotients(absl::Span<const uint32_t> positions, int parameter, BitWriter* writer) {
  uint32_t next = 0;
  for (uint32_t position : positions) {
    writer->PutUnary((position - next) >> parameter);
    next = position + 1;
  }
}

void RiceDecoder::StartTensor(uint32_t base, int64_t size, int parameter) {
  next_ = base;
  end_ = next_ + static_cast<uint64_t>(size);
  parameter_ = parameter;
}

absl::Status RiceDecoder::Next(absl::Span<uint32_t> positions) {
  for (uint32_t& position : positions) {
    uint64_t quotient;
    if (!quotients_.GetUnary(&quotient)) {
      return absl::InvalidArgumentError("the message ends before its last position; send it whole");
    }
    uint32_t remainder = 0;
    const bool have_remainder = remainders_.Get(parameter_, &remainder);
    const uint64_t gap = (quotient << parameter_) + remainder;
    if (!have_remainder || gap >= end_ - next_) {
      return absl::InvalidArgumentError("a position lies past the end of the tensor");
    }
    position = static_cast<uint32_t>(next_ + gap);
    next_ += gap + 1;
  }
  return absl::OkStatus();
}

absl::Status RiceDecoder::Finish() const {
  if (quotients_.AtPaddedEnd()) return absl::OkStatus();
  return absl::InvalidArgumentError("bits follow the last position; a message ends with its bitmap");
}

}  // namespace terse
