#include "bench/position_tally.h"

namespace terse {

void PositionTally::Add(int64_t count, absl::Span<const CoderBits> costs) {
  if (bits_.empty()) {
    for (const CoderBits& cost : costs) bits_.push_back({cost.coder, 0});
  }
  for (size_t i = 0; i < costs.size(); ++i) bits_[i].bits += costs[i].bits;
  positions_ += count;
}

double PositionTally::Bits(const std::string& coder) const {
  for (const CoderBits& sum : bits_) {
    if (sum.coder == coder) return sum.bits;
  }
  return 0;
}

void PositionTally::Report(const std::string& row, const std::string& table, std::vector<Metric>* metrics) const {
  if (positions_ == 0) return;
  const auto count = static_cast<double>(positions_);
  metrics->push_back({"positions", row, count, {}, table});
  for (const CoderBits& sum : bits_) metrics->push_back({sum.coder, row, sum.bits / count, {}, table});
}

}  // namespace terse
