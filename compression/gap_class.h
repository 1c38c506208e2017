// A coder of clustered positions. Gaps are put into classes of like magnitude, half an octave wide; the classes are
// coded by a range variant of asymmetric numeral systems (rANS: Duda, Asymmetric numeral systems, arXiv:1311.2540,
// 2013) with one static table per tensor, the place of a gap within its class is sent as it is. Where positions crowd
// together, as in the layers of a network early in training, gaps are far from the geometric distribution of Golomb's
// codes.
//
// For a gap of z zeros: class z for z < 4; otherwise with l = floor(log2 z), class 2l + (the bit of z below its leading
// one), and the l - 1 bits below that. Classes 0..61 cover all gaps.
//
// The table holds one level a class, 4 bits: 0 for unused, l >= 1 for about w(l) / 256 of the most frequent class, with
// w = 2, 3, 4, 6, 8, 12, ..., 256. Frequencies in 1/4096 follow from the levels by integer arithmetic. Rounding to
// levels costs about 0.01 bits a position and makes the table small: 4 bits a class in place of 10 or more.
#ifndef TERSE_COMPRESSION_GAP_CLASS_H_
#define TERSE_COMPRESSION_GAP_CLASS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compression/bit_stream.h"
#include "compression/position_coder.h"

namespace terse {

constexpr int kGapClasses = 62;
using GapClassCounts = std::array<uint32_t, kGapClasses>;
using GapClassLevels = std::array<uint8_t, kGapClasses>;

// The coding of some positions: made once, for who wants to know its bits before it writes them. `positions` must
// outlive it. Takes four bytes a position.
class GapClassCoding {
 public:
  explicit GapClassCoding(absl::Span<const uint32_t> positions);

  int64_t bits() const { return bits_; }
  // The number of gaps in each class.
  const GapClassCounts& counts() const { return counts_; }
  void Put(BitWriter* writer) const;

 private:
  absl::Span<const uint32_t> positions_;
  GapClassCounts counts_;
  GapClassLevels levels_;
  std::vector<uint32_t> words_;  // what the state gives before each position
  uint32_t state_ = 0;
  int64_t bits_ = 0;
};

// The coder "gap_class": the number of the last class used (6 bits), the levels of classes 0 to that one, the rANS
// state (32 bits), then for each position the 16 bits that the state takes in, if it does, and the bits within the
// class. Contract: PositionCoder's. Finish refuses streams that do not end in the encoder's first state, and tables
// that are not those of the classes read. A reader holds 32 KiB, which its clones share.
const PositionCoder& GapClassCoder();

}  // namespace terse

#endif  // TERSE_COMPRESSION_GAP_CLASS_H_
