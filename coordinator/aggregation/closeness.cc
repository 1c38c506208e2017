#include "coordinator/aggregation/closeness.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "coordinator/aggregation/update_blocks.h"
#include "core/status.h"

namespace terse {
namespace {

double Square(double value) { return value * value; }

// Adds what two updates differ by in a block.
double AddDifference(double sum, const UpdatePart& a, const UpdatePart& b) {
  size_t i = 0, j = 0;
  while (i < a.positions.size() && j < b.positions.size()) {
    const uint32_t at_a = a.positions[i], at_b = b.positions[j];
    const double left = at_a <= at_b ? static_cast<double>(a.values[i]) : 0.0;
    const double right = at_b <= at_a ? static_cast<double>(b.values[j]) : 0.0;
    sum += Square(left - right);
    i += at_a <= at_b;
    j += at_b <= at_a;
  }
  for (; i < a.values.size(); ++i) sum += Square(a.values[i]);
  for (; j < b.values.size(); ++j) sum += Square(b.values[j]);
  return sum;
}

}  // namespace

absl::StatusOr<Closeness> Closeness::Measure(const Codec& codec, absl::Span<const absl::string_view> messages) {
  Closeness made;
  const size_t size = made.size_ = messages.size();
  made.distances_.resize(size * size);
  TERSE_ASSIGN_OR_RETURN(UpdateBlocks blocks, UpdateBlocks::Open(codec, messages, codec.layout().parameters()));
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool more, blocks.Next());
    if (!more) break;
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = i + 1; j < size; ++j) {
        double& distance = made.distances_[i * size + j];
        distance = AddDifference(distance, blocks.parts()[i], blocks.parts()[j]);
      }
    }
  }
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < i; ++j) made.distances_[i * size + j] = made.distances_[j * size + i];
  }
  made.order_.resize(size * size);
  for (size_t i = 0; i < size; ++i) {
    const auto row = made.order_.begin() + i * size;
    std::iota(row, row + size, 0u);
    std::stable_sort(row, row + size,
                     [&](uint32_t a, uint32_t b) { return made.SquaredDistance(i, a) < made.SquaredDistance(i, b); });
  }
  return made;
}

double Closeness::Score(size_t i, const std::vector<bool>& left, int64_t neighbours) const {
  double sum = 0;
  for (size_t rank = 0; rank < size_ && neighbours > 0; ++rank) {
    const size_t other = order_[i * size_ + rank];
    if (other == i || !left[other]) continue;
    sum += SquaredDistance(i, other);
    --neighbours;
  }
  return sum;
}

std::vector<size_t> Closeness::ByScore(int64_t byzantine) const {
  const std::vector<bool> all(size_, true);
  std::vector<std::pair<double, size_t>> scores;
  for (size_t i = 0; i < size_; ++i) {
    scores.emplace_back(Score(i, all, static_cast<int64_t>(size_) - byzantine - 2), i);
  }
  std::sort(scores.begin(), scores.end());
  std::vector<size_t> order;
  for (const auto& [score, i] : scores) order.push_back(i);
  return order;
}

}  // namespace terse
