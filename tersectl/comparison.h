// Runs side by side: their figures, and what it cost them to reach an accuracy. Pure functions.
#ifndef TERSE_TERSECTL_COMPARISON_H_
#define TERSE_TERSECTL_COMPARISON_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tersectl/config_diff.h"
#include "tersectl/report.h"

namespace terse {

struct ComparedRun {
  std::string label;                             // as it was named on the command line
  std::optional<nlohmann::ordered_json> config;  // nothing where a folder of an earlier release has none
  Summary summary;
  std::vector<EvaluatedPoint> points;
};

struct Comparison {
  std::vector<ComparedRun> runs;
  std::vector<std::string> without_config;     // labels of runs whose settings are not known, and not compared
  std::vector<SettingDifference> differences;  // values in the order of the other runs
  std::vector<double> accuracies;              // to reach, ascending
  std::string chosen_by;                       // a sentence on these accuracies
};

// `accuracies` are those to reach; none: 80, 90, 95 and 100% of the best accuracy that all runs with accuracies reach,
// cut after three decimals.
Comparison Compare(std::vector<ComparedRun> runs, std::vector<double> accuracies);

// The highest accuracy, and the lowest test loss, of all evaluations.
std::optional<double> BestAccuracy(const std::vector<EvaluatedPoint>& points);
std::optional<double> BestLoss(const std::vector<EvaluatedPoint>& points);

// The first evaluation with at least this accuracy, to a millionth; nullptr when there is none.
const EvaluatedPoint* FirstToReach(double accuracy, const std::vector<EvaluatedPoint>& points);

nlohmann::ordered_json ComparisonJson(const Comparison& comparison);

// For people: the settings that differ, the figures, and the costs of the accuracies.
std::string ComparisonText(const Comparison& comparison, bool color);

}  // namespace terse

#endif  // TERSE_TERSECTL_COMPARISON_H_
