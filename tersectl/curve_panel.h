// Test accuracy and test loss against rounds, side by side on a terminal.
#ifndef TERSE_TERSECTL_CURVE_PANEL_H_
#define TERSE_TERSECTL_CURVE_PANEL_H_

#include <cstddef>
#include <vector>

#include "tersectl/report.h"
#include "tersectl/screen_row.h"

namespace terse {

// Puts `rows` >= 2 of them on `page`: titles, and charts below with their highest and lowest figures. A narrow page has
// the accuracy alone.
void PutCurves(const std::vector<EvaluatedPoint>& points, size_t rows, ScreenPage* page);

}  // namespace terse

#endif  // TERSE_TERSECTL_CURVE_PANEL_H_
