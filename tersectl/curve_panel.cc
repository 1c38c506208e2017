#include "tersectl/curve_panel.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tersectl/braille_chart.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

constexpr size_t kWidthOfTwo = 72;
constexpr size_t kAxis = 7;  // columns of a chart's figures

struct Curve {
  const char* title;
  ChartPoints points;
  BrailleChart chart;
};

// One row of a chart with its figure at the edge.
void AddChartRow(const Curve& curve, size_t at, ScreenRow* row) {
  const bool is_top = at == 0, is_bottom = at + 1 == curve.chart.rows.size();
  const bool is_labelled = !curve.points.empty() && (is_top || is_bottom);
  const double value = is_top ? curve.chart.highest : curve.chart.lowest;
  row->AddCell(is_labelled ? absl::StrFormat("%.4g", value) : "", kAxis, true, Ink::kDim);
  row->Add(" ");
  row->AddCell(curve.chart.rows[at], ColumnsOf(curve.chart.rows[at]), false, Ink::kGraph);
}

std::string CurveTitle(const Curve& curve) {
  if (curve.points.empty()) return absl::StrCat(curve.title, "  not evaluated yet");
  return absl::StrFormat("%s  %s  rounds %.0f to %.0f", curve.title, DecimalText(curve.points.back().second),
                         curve.points.front().first, curve.points.back().first);
}

}  // namespace

void PutCurves(const std::vector<EvaluatedPoint>& points, size_t rows, ScreenPage* page) {
  std::vector<Curve> curves = {{"accuracy", {}, {}}, {"test loss", {}, {}}};
  for (const EvaluatedPoint& point : points) {
    const double round = static_cast<double>(point.round);
    if (point.accuracy.has_value()) curves[0].points.emplace_back(round, *point.accuracy);
    if (point.test_loss.has_value()) curves[1].points.emplace_back(round, *point.test_loss);
  }
  if (HasLossAlone(points)) curves.erase(curves.begin());
  if (page->size.width < kWidthOfTwo) curves.erase(curves.begin() + 1, curves.end());
  const size_t column = page->size.width / curves.size();
  for (Curve& curve : curves) {
    curve.chart = DrawChart(curve.points, column > kAxis + 3 ? column - kAxis - 3 : 0, rows - 1);
  }
  ScreenRow title = page->NewRow();
  for (const Curve& curve : curves) title.AddCell(CurveTitle(curve), column, false, Ink::kBold);
  page->Put(title);
  for (size_t at = 0; at + 1 < rows; ++at) {
    ScreenRow row = page->NewRow();
    for (size_t i = 0; i < curves.size(); ++i) {
      AddChartRow(curves[i], at, &row);
      if (i + 1 < curves.size()) row.Add("  ");
    }
    page->Put(row);
  }
}

}  // namespace terse
