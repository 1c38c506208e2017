// The picture of a run: test accuracy, and test loss below it or, in regression, alone, against what the clients sent.
#ifndef TERSE_TERSECTL_SVG_PLOT_H_
#define TERSE_TERSECTL_SVG_PLOT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tersectl/report.h"

namespace terse {

// A self-contained SVG file, light or dark as the viewer prefers. The horizontal axis is logarithmic: bytes on the
// wire, cumulative over rounds and clients. The loss has a panel when every point has one. Without points the file says
// so. `title` and `subtitle` are plain text.
std::string AccuracyPlot(absl::string_view title, absl::string_view subtitle,
                         const std::vector<EvaluatedPoint>& points);

// A run in a picture of several.
struct RunCurve {
  std::string label;  // plain text
  std::vector<EvaluatedPoint> points;
};

// The same of several runs in one panel: accuracies, or losses when no run has an accuracy. A run without what is shown
// is in the legend alone.
std::string ComparisonPlot(absl::string_view title, const std::vector<RunCurve>& curves);

}  // namespace terse

#endif  // TERSE_TERSECTL_SVG_PLOT_H_
