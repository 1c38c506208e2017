#include "tersectl/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

constexpr double kWidth = 860, kLeft = 76, kRight = 816;
constexpr double kAccuracyTop = 84, kAccuracyBottom = 364, kLossTop = 404, kLossBottom = 544;

constexpr char kStyle[] =
    "<style>\n"
    "text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#4b5563}\n"
    ".title{font-size:18px;font-weight:600;fill:#111827}.value{font-weight:600;fill:#111827}\n"
    ".paper{fill:#ffffff}.grid{stroke:#e5e7eb}.axis{stroke:#9ca3af}\n"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}\n"
    ".accuracy .line{stroke:#1d4ed8}.accuracy circle{fill:#1d4ed8}\n"
    ".loss .line{stroke:#b45309}.loss circle{fill:#b45309}\n"
    "@media (prefers-color-scheme:dark){\n"
    "text{fill:#a8b0bd}.title,.value{fill:#f3f4f6}.paper{fill:#14171c}.grid{stroke:#2a2f38}.axis{stroke:#5b6370}\n"
    ".accuracy .line{stroke:#7cb0ff}.accuracy circle{fill:#7cb0ff}\n"
    ".loss .line{stroke:#f5a65b}.loss circle{fill:#f5a65b}\n"
    "}\n"
    "</style>\n";

std::string Escape(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// An axis: where a value lies, and which values are marked.
struct Axis {
  double low = 0, high = 1;   // values (or their logarithms) at the ends
  double from = 0, to = 1;    // coordinates of the ends
  std::vector<double> ticks;  // values

  double At(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

// 1, 2 or 5 times a power of ten, so that `span` has about `count` steps.
double NiceStep(double span, int count) {
  const double rough = span / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power * 1.0001) return factor * power;
  }
  return 10 * power;
}

Axis LinearAxis(double low, double high, double top, double bottom, int count) {
  const double step = NiceStep(std::max(high - low, 1e-3), count);
  Axis axis;
  axis.low = std::floor(low / step + 1e-9) * step;
  axis.high = std::ceil(high / step - 1e-9) * step;
  if (axis.high <= axis.low) axis.high = axis.low + step;
  axis.from = bottom;
  axis.to = top;
  for (int i = 0; axis.low + i * step <= axis.high + step / 2; ++i) axis.ticks.push_back(axis.low + i * step);
  return axis;
}

// Logarithmic: `low` and `high` are log10 of bytes. Marks powers of ten, and 2 and 5 between them on a short axis.
Axis ByteAxis(double least, double most) {
  Axis axis;
  axis.low = std::log10(least) - 0.06;
  axis.high = std::log10(most) + 0.06;
  axis.from = kLeft;
  axis.to = kRight;
  const bool fine = axis.high - axis.low < 2.5;
  for (int power = static_cast<int>(std::floor(axis.low)); power <= axis.high; ++power) {
    for (const int factor : {1, 2, 5}) {
      const double value = factor * std::pow(10, power);
      const double position = std::log10(value);
      if ((fine || factor == 1) && position >= axis.low && position <= axis.high) axis.ticks.push_back(value);
    }
  }
  return axis;
}

std::string ByteTick(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < sizeof(kUnits) / sizeof(kUnits[0]); ++unit) bytes /= 1000;
  return absl::StrFormat("%.0f %s", bytes, kUnits[unit]);
}

struct Panel {
  std::string title;
  std::function<double(const EvaluatedPoint&)> value;
  std::function<std::string(double)> text;
  Axis y;
};

void AppendGrid(const Panel& panel, const Axis& x, std::string* svg) {
  for (const double tick : x.ticks) {
    absl::StrAppendFormat(svg, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                          x.At(std::log10(tick)), x.At(std::log10(tick)), panel.y.to, panel.y.from);
  }
  const double step = panel.y.ticks[1] - panel.y.ticks[0];
  const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  for (const double tick : panel.y.ticks) {
    const double y = panel.y.At(tick);
    absl::StrAppendFormat(svg, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", kLeft,
                          kRight, y, y);
    absl::StrAppendFormat(svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.*f</text>\n", kLeft - 10, y + 4.5,
                          decimals, tick);
  }
  absl::StrAppendFormat(svg, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", kLeft, kRight,
                        panel.y.from, panel.y.from);
  absl::StrAppendFormat(svg, "<text transform=\"translate(22 %.1f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
                        (panel.y.from + panel.y.to) / 2, panel.title);
}

void AppendCurve(const Panel& panel, absl::string_view css_class, const Axis& x,
                 const std::vector<EvaluatedPoint>& points, std::string* svg) {
  absl::StrAppend(svg, "<g class=\"", css_class, "\">\n<polyline class=\"line\" points=\"");
  for (const EvaluatedPoint& point : points) {
    absl::StrAppendFormat(svg, "%.1f,%.1f ", x.At(std::log10(point.wire_bytes_up)), panel.y.At(panel.value(point)));
  }
  absl::StrAppend(svg, "\"/>\n");
  for (const EvaluatedPoint& point : points) {
    absl::StrAppendFormat(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.8\"><title>round %d, %s: %s</title></circle>\n",
                          x.At(std::log10(point.wire_bytes_up)), panel.y.At(panel.value(point)), point.round,
                          BytesText(point.wire_bytes_up), panel.text(panel.value(point)));
  }
  absl::StrAppend(svg, "</g>\n");
}

// The curve's last value, above its end.
void AppendLastValue(const Panel& panel, const std::vector<EvaluatedPoint>& points, std::string* svg) {
  const double last = panel.value(points.back());
  absl::StrAppendFormat(svg, "<text class=\"value\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", kRight,
                        panel.y.At(last) - 10, panel.text(last));
}

void AppendByteAxis(const Axis& x, double bottom, std::string* svg) {
  for (const double tick : x.ticks) {
    absl::StrAppendFormat(svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x.At(std::log10(tick)),
                          bottom + 20, ByteTick(tick));
  }
  absl::StrAppendFormat(svg,
                        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">sent by all clients, bytes on the wire "
                        "(logarithmic)</text>\n",
                        (kLeft + kRight) / 2, bottom + 44);
}

Panel MakePanel(std::string title, double top, double bottom, int steps,
                std::function<double(const EvaluatedPoint&)> value, bool from_zero,
                const std::vector<EvaluatedPoint>& points) {
  const auto less = [&](const EvaluatedPoint& a, const EvaluatedPoint& b) { return value(a) < value(b); };
  const auto ends = std::minmax_element(points.begin(), points.end(), less);
  const Axis y = LinearAxis(from_zero ? 0 : value(*ends.first), value(*ends.second), top, bottom, steps);
  return {std::move(title), value, DecimalText, y};
}

std::string Open(double height, absl::string_view title, absl::string_view subtitle) {
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
      "role=\"img\">\n",
      kWidth, height, kWidth, height);
  absl::StrAppend(&svg, "<title>", Escape(title), "</title>\n", kStyle);
  absl::StrAppendFormat(&svg, "<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n", kWidth, height);
  absl::StrAppendFormat(&svg, "<text class=\"title\" x=\"%.0f\" y=\"34\">%s</text>\n", kLeft, Escape(title));
  absl::StrAppendFormat(&svg, "<text x=\"%.0f\" y=\"58\">%s</text>\n", kLeft, Escape(subtitle));
  return svg;
}

double AccuracyOf(const EvaluatedPoint& point) { return *point.accuracy; }
double LossOf(const EvaluatedPoint& point) { return *point.test_loss; }

bool IsFinite(const std::optional<double>& value) { return value.has_value() && std::isfinite(*value); }

// Colors in light and in dark, and dashes, by which curves that lie on each other are told apart.
struct CurveStyle {
  const char *light, *dark, *dashes;
};
constexpr CurveStyle kCurveStyles[] = {{"#1d4ed8", "#7cb0ff", "none"}, {"#b45309", "#f5a65b", "9 4"},
                                       {"#047857", "#5fd4a6", "3 3"},  {"#a21caf", "#e59bf0", "12 4 3 4"},
                                       {"#b91c1c", "#ff9a94", "6 2"},  {"#0e7490", "#67d3ea", "2 5"}};
constexpr size_t kStyles = sizeof(kCurveStyles) / sizeof(kCurveStyles[0]);

std::string CurveClass(size_t curve) { return absl::StrCat("run", curve % kStyles); }

std::string CurveStyleSheet() {
  std::string light, dark;
  for (size_t i = 0; i < kStyles; ++i) {
    const CurveStyle& style = kCurveStyles[i];
    const std::string name = CurveClass(i);
    absl::StrAppend(&light, ".", name, " .line{stroke:", style.light, ";stroke-dasharray:", style.dashes, "}.", name,
                    " circle{fill:", style.light, "}\n");
    absl::StrAppend(&dark, ".", name, " .line{stroke:", style.dark, "}.", name, " circle{fill:", style.dark, "}\n");
  }
  return absl::StrCat("<style>\n", light, "@media (prefers-color-scheme:dark){\n", dark, "}\n</style>\n");
}

// The points that can be drawn: a logarithm needs bytes, a coordinate a finite value.
std::vector<EvaluatedPoint> Drawable(const std::vector<EvaluatedPoint>& points, bool with_accuracy) {
  std::vector<EvaluatedPoint> drawable;
  for (const EvaluatedPoint& point : points) {
    if (point.wire_bytes_up > 0 && IsFinite(with_accuracy ? point.accuracy : point.test_loss))
      drawable.push_back(point);
  }
  return drawable;
}

void AppendLegend(const std::vector<RunCurve>& curves, double top, std::string* svg) {
  for (size_t i = 0; i < curves.size(); ++i) {
    const double y = top + 22 * static_cast<double>(i);
    absl::StrAppendFormat(svg,
                          "<g class=\"%s\"><line class=\"line\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                          "</g><text x=\"%.0f\" y=\"%.1f\">%s</text>\n",
                          CurveClass(i), kLeft, kLeft + 36, y, y, kLeft + 46, y + 4.5, Escape(curves[i].label));
  }
}

}  // namespace

std::string ComparisonPlot(absl::string_view title, const std::vector<RunCurve>& curves) {
  const bool has_accuracy = std::any_of(curves.begin(), curves.end(), [](const RunCurve& curve) {
    return std::any_of(curve.points.begin(), curve.points.end(),
                       [](const EvaluatedPoint& point) { return point.accuracy.has_value(); });
  });
  std::vector<std::vector<EvaluatedPoint>> drawable;
  std::vector<EvaluatedPoint> all;
  for (const RunCurve& curve : curves) {
    drawable.push_back(Drawable(curve.points, has_accuracy));
    all.insert(all.end(), drawable.back().begin(), drawable.back().end());
  }
  const std::string subtitle = has_accuracy ? "test accuracy against bytes sent" : "test loss against bytes sent";
  const double height = kAccuracyBottom + 64 + 22 * static_cast<double>(curves.size()) + 12;
  if (all.empty()) {
    return Open(120, title, subtitle) +
           absl::StrFormat("<text x=\"%.0f\" y=\"90\">No round has been evaluated yet.</text>\n</svg>\n", kLeft);
  }
  const auto less = [](const EvaluatedPoint& a, const EvaluatedPoint& b) { return a.wire_bytes_up < b.wire_bytes_up; };
  const auto ends = std::minmax_element(all.begin(), all.end(), less);
  const Axis x = ByteAxis(ends.first->wire_bytes_up, ends.second->wire_bytes_up);
  const Panel panel = has_accuracy
                          ? MakePanel("test accuracy", kAccuracyTop, kAccuracyBottom, 6, AccuracyOf, false, all)
                          : MakePanel("test loss", kAccuracyTop, kAccuracyBottom, 6, LossOf, true, all);
  std::string svg = Open(height, title, subtitle) + CurveStyleSheet();
  AppendGrid(panel, x, &svg);
  for (size_t i = 0; i < curves.size(); ++i) {
    if (!drawable[i].empty()) AppendCurve(panel, CurveClass(i), x, drawable[i], &svg);
  }
  AppendByteAxis(x, kAccuracyBottom, &svg);
  AppendLegend(curves, kAccuracyBottom + 74, &svg);
  return svg + "</svg>\n";
}

std::string AccuracyPlot(absl::string_view title, absl::string_view subtitle,
                         const std::vector<EvaluatedPoint>& all_points) {
  const bool has_accuracy = !HasLossAlone(all_points);
  std::vector<EvaluatedPoint> points;
  bool has_loss = true;
  for (const EvaluatedPoint& point : all_points) {
    // A logarithm needs bytes, a coordinate a finite value.
    if (point.wire_bytes_up == 0 || !IsFinite(has_accuracy ? point.accuracy : point.test_loss)) continue;
    points.push_back(point);
    has_loss = has_loss && IsFinite(point.test_loss);
  }
  if (points.empty()) {
    return Open(120, title, subtitle) +
           absl::StrFormat("<text x=\"%.0f\" y=\"90\">No round has been evaluated yet.</text>\n</svg>\n", kLeft);
  }
  const double bottom = has_accuracy && has_loss ? kLossBottom : kAccuracyBottom;
  const Axis x = ByteAxis(points.front().wire_bytes_up, points.back().wire_bytes_up);
  std::string svg = Open(bottom + 64, title, subtitle);
  const auto append = [&](const Panel& panel, absl::string_view css_class) {
    AppendGrid(panel, x, &svg);
    AppendCurve(panel, css_class, x, points, &svg);
    AppendLastValue(panel, points, &svg);
  };
  if (has_accuracy)
    append(MakePanel("test accuracy", kAccuracyTop, kAccuracyBottom, 6, AccuracyOf, false, points), "accuracy");
  if (has_loss) {
    append(MakePanel("test loss", has_accuracy ? kLossTop : kAccuracyTop, bottom, has_accuracy ? 3 : 6, LossOf, true,
                     points),
           "loss");
  }
  AppendByteAxis(x, bottom, &svg);
  return svg + "</svg>\n";
}

}  // namespace terse
