#include "tersectl/braille_chart.h"

#include <utf8.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace terse {
namespace {

constexpr size_t kAcross = 2, kDown = 4;  // dots of a character
// Unicode numbers the dots by columns, but for the lowest two, which came later.
constexpr unsigned char kBits[kDown][kAcross] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

class Dots {
 public:
  Dots(size_t width, size_t height) : width_(width), height_(height), cells_(width * height) {}
  void Set(size_t x, size_t y) { cells_[y / kDown * width_ + x / kAcross] |= kBits[y % kDown][x % kAcross]; }
  // All but the dot at the end.
  void Join(size_t from_x, size_t from_y, size_t to_x, size_t to_y) {
    const double across = static_cast<double>(to_x) - static_cast<double>(from_x);
    const double down = static_cast<double>(to_y) - static_cast<double>(from_y);
    const double steps = std::max(std::abs(across), std::abs(down));
    for (double step = 0; step < steps; ++step) {
      Set(static_cast<size_t>(std::llround(static_cast<double>(from_x) + step / steps * across)),
          static_cast<size_t>(std::llround(static_cast<double>(from_y) + step / steps * down)));
    }
  }
  std::string Row(size_t row) const {
    std::string text;
    for (size_t i = row * width_; i < (row + 1) * width_; ++i) {
      utf8::unchecked::append(cells_[i] == 0 ? U' ' : 0x2800u + cells_[i], std::back_inserter(text));
    }
    return text;
  }
  size_t columns() const { return width_ * kAcross; }
  size_t rows() const { return height_ * kDown; }

 private:
  const size_t width_, height_;
  std::vector<unsigned char> cells_;
};

// Where `value` lies on `count` dots from `low` to `high`.
size_t Place(double value, double low, double high, size_t count) {
  if (!(high > low)) return 0;
  return static_cast<size_t>(std::llround((value - low) / (high - low) * static_cast<double>(count - 1)));
}

void DrawCurve(const ChartPoints& points, double low, double high, Dots* dots) {
  const auto column_of = [&](const std::pair<double, double>& point) {
    return Place(point.first, points.front().first, points.back().first, dots->columns());
  };
  size_t last_x = 0, last_y = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t x = column_of(points[i]);
    if (i + 1 < points.size() && column_of(points[i + 1]) == x) continue;
    const size_t y = dots->rows() - 1 - Place(points[i].second, low, high, dots->rows());
    if (x > 0) dots->Join(last_x, last_y, x, y);  // column 0 has the first dot
    dots->Set(x, y);
    last_x = x;
    last_y = y;
  }
}

}  // namespace

BrailleChart DrawChart(const ChartPoints& points, size_t width, size_t height) {
  ChartPoints finite;
  std::copy_if(points.begin(), points.end(), std::back_inserter(finite),
               [](const auto& point) { return std::isfinite(point.first) && std::isfinite(point.second); });
  Dots dots(width, height);
  BrailleChart chart;
  if (!finite.empty() && width > 0 && height > 0) {
    const auto [low, high] = std::minmax_element(finite.begin(), finite.end(),
                                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    chart.lowest = low->second;
    chart.highest = high->second;
    DrawCurve(finite, chart.lowest, chart.highest, &dots);
  }
  for (size_t row = 0; row < height; ++row) chart.rows.push_back(dots.Row(row));
  return chart;
}

}  // namespace terse
