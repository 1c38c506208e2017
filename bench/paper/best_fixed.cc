#include "bench/paper/best_fixed.h"

#include <cmath>

namespace terse {

bool Reaches(double metric, double target, bool smaller_is_better) {
  return std::isfinite(metric) && (smaller_is_better ? metric <= target : metric >= target);
}

std::optional<BestFixed> FindBestFixed(const std::vector<FixedPoint>& points, double tolerance,
                                       bool smaller_is_better) {
  std::optional<double> best;
  for (const FixedPoint& point : points) {
    if (!point.fixed || !std::isfinite(point.metric)) continue;
    if (!best.has_value() || Reaches(point.metric, *best, smaller_is_better)) best = point.metric;
  }
  if (!best.has_value()) return std::nullopt;
  BestFixed found;
  found.target = smaller_is_better ? *best * (1 + tolerance) : *best - tolerance;
  bool any = false;
  for (size_t row = 0; row < points.size(); ++row) {
    if (!points[row].fixed || !Reaches(points[row].metric, found.target, smaller_is_better)) continue;
    if (any && points[row].bytes >= points[found.row].bytes) continue;
    found.row = row;
    any = true;
  }
  return found;
}

}  // namespace terse
