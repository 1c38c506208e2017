// The best fixed setting of a grid: the row that reaches a quality with the fewest bytes.
#ifndef TERSE_BENCH_PAPER_BEST_FIXED_H_
#define TERSE_BENCH_PAPER_BEST_FIXED_H_

#include <optional>
#include <vector>

namespace terse {

// The result of a row of a table.
struct FixedPoint {
  bool fixed = true;  // one of the grid
  double metric = 0;
  double bytes = 0;  // that a client sent
};

struct BestFixed {
  double target = 0;  // the quality that is asked for
  size_t row = 0;     // of the grid, the cheapest of those that reach it
};

// The target is the grid's best metric less `tolerance` (accuracies), or times 1 + `tolerance` (`smaller_is_better`:
// perplexities). nullopt without a row of the grid. A metric that is not finite reaches nothing.
std::optional<BestFixed> FindBestFixed(const std::vector<FixedPoint>& points, double tolerance, bool smaller_is_better);

// Whether `metric` is at least as good as `target`.
bool Reaches(double metric, double target, bool smaller_is_better);

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_BEST_FIXED_H_
