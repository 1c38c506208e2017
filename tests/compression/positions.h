// Sets of positions and ways to code them, for the tests of position coders.
#ifndef TERSE_TESTS_COMPRESSION_POSITIONS_H_
#define TERSE_TESTS_COMPRESSION_POSITIONS_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compression/bit_stream.h"
#include "compression/position_coder.h"
#include "core/random.h"

namespace terse {

using Positions = std::vector<uint32_t>;

// `count` of `size` positions, all sets equally likely: Floyd's sampling, or one look at each element where that is
// less.
inline Positions RandomPositions(int64_t count, int64_t size, Random* random) {
  if (size / 20 < count) {
    Positions positions;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t missing = count - static_cast<int64_t>(positions.size());
      if (static_cast<int64_t>(random->Below(size - i)) < missing) positions.push_back(static_cast<uint32_t>(i));
    }
    return positions;
  }
  std::set<uint32_t> chosen;
  for (int64_t bound = size - count; bound < size; ++bound) {
    const uint32_t position = static_cast<uint32_t>(random->Below(bound + 1));
    if (!chosen.insert(position).second) chosen.insert(static_cast<uint32_t>(bound));
  }
  return Positions(chosen.begin(), chosen.end());
}

// About `density` of a rows x columns matrix whose rows and columns differ in how often they are chosen, as gradients
// do early in training: rates are products of exp(spread * a number with the variance of a normal one).
inline Positions ClusteredPositions(int64_t rows, int64_t columns, double density, double spread, Random* random) {
  const auto rates = [&](int64_t n) {
    std::vector<double> rate(n);
    double sum = 0;
    for (double& r : rate) {
      double normal = 0;
      for (int i = 0; i < 12; ++i) normal += random->Uniform(-0.5, 0.5);
      sum += r = std::exp(spread * normal);
    }
    for (double& r : rate) r *= static_cast<double>(n) / sum;
    return rate;
  };
  const std::vector<double> row_rates = rates(rows), column_rates = rates(columns);
  Positions positions;
  for (int64_t i = 0; i < rows * columns; ++i) {
    const double rate = density * row_rates[i / columns] * column_rates[i % columns];
    if (random->Uniform() < rate) positions.push_back(static_cast<uint32_t>(i));
  }
  return positions;
}

// A string's bytes in memory of exactly their size, so that the address sanitizer sees a byte read too far.
class ExactBytes {
 public:
  explicit ExactBytes(absl::string_view bytes) : bytes_(new char[bytes.size()]), size_(bytes.size()) {
    if (!bytes.empty()) std::memcpy(bytes_.get(), bytes.data(), bytes.size());
  }

  // A reader behind the first `lead` bits.
  BitReader After(uint64_t lead) const {
    BitReader reader(absl::string_view(bytes_.get(), size_));
    reader.Skip(lead);
    return reader;
  }

 private:
  std::unique_ptr<char[]> bytes_;
  size_t size_;
};

// Returns the bytes that Put writes behind `lead` ones, with `trailer` (14 bits) behind them.
inline std::string EncodePositions(const PositionCoder& coder, const Positions& positions, int64_t size, int lead = 0,
                                   uint32_t trailer = 0) {
  std::string bytes;
  BitWriter writer(&bytes);
  writer.Put((uint64_t{1} << lead) - 1, lead);
  coder.Put(positions, size, &writer);
  writer.Put(trailer, 14);
  writer.Finish();
  return bytes;
}

// Returns the bits that Put writes, one character a bit.
inline std::string PositionBits(const PositionCoder& coder, const Positions& positions, int64_t size) {
  const std::string bytes = EncodePositions(coder, positions, size);
  std::string bits(coder.Bits(positions, size), '0');
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<char>('0' + (bytes[i / 8] >> i % 8 & 1));
  return bits;
}

// Returns the bytes of such bits; other characters than 0 and 1 are for the eye.
inline std::string BytesOfBits(absl::string_view bits) {
  std::string bytes;
  BitWriter writer(&bytes);
  for (char bit : bits) {
    if (bit == '0' || bit == '1') writer.Put(bit - '0', 1);
  }
  writer.Finish();
  return bytes;
}

struct DecodedPositions {
  Positions positions;
  BitReader after;
};

inline absl::StatusOr<DecodedPositions> DecodePositions(const PositionCoder& coder, int64_t count, int64_t size,
                                                        const BitReader& stream) {
  absl::StatusOr<std::unique_ptr<PositionReader>> reader = coder.Open(count, size, stream);
  if (!reader.ok()) return reader.status();
  DecodedPositions decoded;
  decoded.positions.resize(count);
  const absl::Status status = (*reader)->Next(absl::MakeSpan(decoded.positions));
  if (!status.ok()) return status;
  const absl::StatusOr<BitReader> after = (*reader)->Finish();
  if (!after.ok()) return after.status();
  decoded.after = *after;
  return decoded;
}

// The status of reading `count` positions from these bits.
inline absl::Status ReadPositionBits(const PositionCoder& coder, int64_t count, int64_t size, absl::string_view bits) {
  const ExactBytes bytes(BytesOfBits(bits));
  return DecodePositions(coder, count, size, bytes.After(0)).status();
}

}  // namespace terse

#endif  // TERSE_TESTS_COMPRESSION_POSITIONS_H_
