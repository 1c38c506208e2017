// The bits that coders take for positions, added up over tensors, clients and rounds.
#ifndef TERSE_BENCH_POSITION_TALLY_H_
#define TERSE_BENCH_POSITION_TALLY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "bench/report.h"

namespace terse {

// The column of the bound behind all coders that know only how many positions there are (PositionEntropy).
constexpr char kPositionBound[] = "log2 C(n,k) / k";

// The bits that a coder takes for all positions of one tensor together.
struct CoderBits {
  std::string coder;  // the column
  double bits = 0;
};

// Not thread-safe.
class PositionTally {
 public:
  // `count` positions and what each coder takes for them: the same coders in the same order every time.
  void Add(int64_t count, absl::Span<const CoderBits> costs);

  // All that `other` has; of the same coders.
  void Add(const PositionTally& other) { Add(other.positions_, other.bits_); }

  int64_t positions() const { return positions_; }
  // Returns the bits of a coder; 0 for one that never came.
  double Bits(const std::string& coder) const;

  // A row of a table: the positions, and each coder's bits a position. None without positions.
  void Report(const std::string& row, const std::string& table, std::vector<Metric>* metrics) const;

 private:
  std::vector<CoderBits> bits_;
  int64_t positions_ = 0;
};

}  // namespace terse

#endif  // TERSE_BENCH_POSITION_TALLY_H_
