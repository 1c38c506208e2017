// A curve of dots for a terminal: each character holds two by four of them.
#ifndef TERSE_TERSECTL_BRAILLE_CHART_H_
#define TERSE_TERSECTL_BRAILLE_CHART_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace terse {

// x and y, in ascending order of x.
using ChartPoints = std::vector<std::pair<double, double>>;

struct BrailleChart {
  std::vector<std::string> rows;  // `height` of them, each of `width` characters of one column
  double lowest = 0, highest = 0;
};

// The points from edge to edge, joined by straight lines; of points in the same column of dots the last is drawn.
// Points that are not finite are left out, and of none there is an empty chart.
BrailleChart DrawChart(const ChartPoints& points, size_t width, size_t height);

}  // namespace terse

#endif  // TERSE_TERSECTL_BRAILLE_CHART_H_
