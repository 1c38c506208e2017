#include "tersectl/comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

std::string KnownText(const std::optional<double>& value, std::string (*text)(double)) {
  return value.has_value() ? text(*value) : "-";
}

Json KnownJson(const std::optional<double>& value) { return value.has_value() ? Json(*value) : Json(); }

// "0.97", "0.9705".
std::string AccuracyText(double accuracy) { return absl::StrCat(accuracy); }

// The accuracies that every run with accuracies reaches, and how they were found.
void ChooseAccuracies(Comparison* comparison) {
  std::optional<double> common;
  for (const ComparedRun& run : comparison->runs) {
    const std::optional<double> best = BestAccuracy(run.points);
    if (best.has_value()) common = std::min(*best, common.value_or(*best));
  }
  if (!common.has_value()) {
    comparison->chosen_by = "No run has an accuracy to reach.";
    return;
  }
  for (const double share : {0.8, 0.9, 0.95, 1.0}) {
    const double accuracy = std::floor(*common * share * 1000 + 1e-9) / 1000;
    const bool is_new = comparison->accuracies.empty() || accuracy > comparison->accuracies.back();
    if (accuracy > 0 && is_new) comparison->accuracies.push_back(accuracy);
  }
  comparison->chosen_by = absl::StrCat("These accuracies are 80, 90, 95 and 100% of ", DecimalText(*common),
                                       ", the best that every run reached; --accuracy names others.");
}

std::vector<TextTable::Column> HeadOf(const std::string& title, const std::vector<ComparedRun>& runs) {
  std::vector<TextTable::Column> head = {{title}};
  for (const ComparedRun& run : runs) head.push_back({run.label, true});
  return head;
}

// One row: a figure of each run.
template <typename Text>
void AddFigure(const std::string& name, const std::vector<ComparedRun>& runs, TextTable* table, const Text& text) {
  std::vector<std::string> row = {name};
  for (const ComparedRun& run : runs) row.push_back(text(run));
  table->AddRow(std::move(row));
}

std::string SettingsText(const Comparison& comparison, bool color) {
  std::string text;
  for (const std::string& label : comparison.without_config) {
    absl::StrAppend(&text, "The settings of ", label, " are not known: the folder has no config.json.\n");
  }
  if (comparison.runs.size() - comparison.without_config.size() < 2) return text;
  if (comparison.differences.empty()) return absl::StrCat(text, "No setting differs.\n");
  std::vector<TextTable::Column> head = {{"setting"}};
  for (const ComparedRun& run : comparison.runs) {
    if (run.config.has_value()) head.push_back({run.label});
  }
  TextTable table(std::move(head));
  for (const SettingDifference& difference : comparison.differences) {
    std::vector<std::string> row = {difference.key};
    for (const Json& value : difference.values) row.push_back(value.is_null() ? "-" : value.dump());
    table.AddRow(std::move(row));
  }
  return text + table.Render(color);
}

std::string FiguresText(const Comparison& comparison, bool color) {
  const std::vector<ComparedRun>& runs = comparison.runs;
  using R = const ComparedRun&;
  TextTable table(HeadOf("figure", runs));
  AddFigure("state", runs, &table, [](R run) { return run.summary.state; });
  AddFigure("accuracy", runs, &table, [](R run) { return KnownText(run.summary.accuracy, DecimalText); });
  AddFigure("best accuracy", runs, &table, [](R run) { return KnownText(BestAccuracy(run.points), DecimalText); });
  AddFigure("test loss", runs, &table, [](R run) { return KnownText(run.summary.loss, DecimalText); });
  AddFigure("best test loss", runs, &table, [](R run) { return KnownText(BestLoss(run.points), DecimalText); });
  AddFigure("rounds", runs, &table, [](R run) { return absl::StrCat(run.summary.rounds); });
  AddFigure("clients", runs, &table, [](R run) { return absl::StrCat(run.summary.clients); });
  AddFigure("iterations per client", runs, &table, [](R run) { return absl::StrCat(run.summary.iterations); });
  AddFigure("up, on the wire", runs, &table, [](R run) { return BytesText(run.summary.wire_bytes_up); });
  AddFigure("down, on the wire", runs, &table, [](R run) { return BytesText(run.summary.wire_bytes_down); });
  AddFigure("compression up", runs, &table, [](R run) { return KnownText(run.summary.compression_up_wire, RateText); });
  AddFigure("compression both ways", runs, &table,
            [](R run) { return KnownText(run.summary.compression_both_wire, RateText); });
  AddFigure("time", runs, &table, [](R run) { return DurationText(run.summary.seconds); });
  return table.Render(color);
}

std::string CostsText(const Comparison& comparison, bool color) {
  if (comparison.accuracies.empty()) return comparison.chosen_by + "\n";
  TextTable table(HeadOf("to reach an accuracy", comparison.runs));
  for (const double accuracy : comparison.accuracies) {
    const auto add = [&](const char* what, const auto& text) {
      AddFigure(absl::StrCat(AccuracyText(accuracy), ": ", what), comparison.runs, &table, [&](const ComparedRun& run) {
        const EvaluatedPoint* const point = FirstToReach(accuracy, run.points);
        return point == nullptr ? std::string("-") : text(*point);
      });
    };
    using P = const EvaluatedPoint&;
    add("up", [](P point) { return BytesText(point.wire_bytes_up); });
    add("both ways", [](P point) { return BytesText(point.wire_bytes_up + point.wire_bytes_down); });
    add("round", [](P point) { return absl::StrCat(point.round); });
    add("time", [](P point) { return DurationText(point.seconds); });
  }
  return absl::StrCat(table.Render(color), comparison.chosen_by, comparison.chosen_by.empty() ? "" : "\n");
}

Json CostsJson(double accuracy, const std::vector<ComparedRun>& runs) {
  Json costs = Json::array();
  for (const ComparedRun& run : runs) {
    const EvaluatedPoint* const point = FirstToReach(accuracy, run.points);
    costs.push_back(point == nullptr ? Json()
                                     : Json{{"round", point->round},
                                            {"wire_bytes_up", point->wire_bytes_up},
                                            {"wire_bytes_down", point->wire_bytes_down},
                                            {"seconds", point->seconds}});
  }
  return Json{{"accuracy", accuracy}, {"runs", costs}};
}

}  // namespace

std::optional<double> BestAccuracy(const std::vector<EvaluatedPoint>& points) {
  std::optional<double> best;
  for (const EvaluatedPoint& point : points) {
    if (point.accuracy.has_value()) best = std::max(*point.accuracy, best.value_or(*point.accuracy));
  }
  return best;
}

std::optional<double> BestLoss(const std::vector<EvaluatedPoint>& points) {
  std::optional<double> best;
  for (const EvaluatedPoint& point : points) {
    if (point.test_loss.has_value()) best = std::min(*point.test_loss, best.value_or(*point.test_loss));
  }
  return best;
}

const EvaluatedPoint* FirstToReach(double accuracy, const std::vector<EvaluatedPoint>& points) {
  // 0.9 of single precision is a little less than 0.9.
  constexpr double kRounding = 1e-6;
  const auto found = std::find_if(points.begin(), points.end(), [accuracy](const EvaluatedPoint& point) {
    return point.accuracy.has_value() && *point.accuracy >= accuracy - kRounding;
  });
  return found == points.end() ? nullptr : &*found;
}

Comparison Compare(std::vector<ComparedRun> runs, std::vector<double> accuracies) {
  Comparison comparison;
  comparison.runs = std::move(runs);
  std::vector<Json> configs;
  for (const ComparedRun& run : comparison.runs) {
    if (run.config.has_value()) {
      configs.push_back(*run.config);
    } else {
      comparison.without_config.push_back(run.label);
    }
  }
  if (configs.size() > 1) comparison.differences = DifferentSettings(configs);
  std::sort(accuracies.begin(), accuracies.end());
  comparison.accuracies = std::move(accuracies);
  if (comparison.accuracies.empty()) ChooseAccuracies(&comparison);
  return comparison;
}

Json ComparisonJson(const Comparison& comparison) {
  Json runs = Json::array();
  for (const ComparedRun& run : comparison.runs) {
    Json one = {{"label", run.label}, {"settings_known", run.config.has_value()}};
    one["best_accuracy"] = KnownJson(BestAccuracy(run.points));
    one["best_loss"] = KnownJson(BestLoss(run.points));
    one["summary"] = SummaryJson(run.summary);
    runs.push_back(std::move(one));
  }
  Json settings = Json::array();
  for (const SettingDifference& row : comparison.differences) {
    settings.push_back({{"key", row.key}, {"values", row.values}});
  }
  Json costs = Json::array();
  for (const double accuracy : comparison.accuracies) costs.push_back(CostsJson(accuracy, comparison.runs));
  return Json{{"runs", runs}, {"settings", settings}, {"accuracies", costs}};
}

std::string ComparisonText(const Comparison& comparison, bool color) {
  return absl::StrJoin({SettingsText(comparison, color), FiguresText(comparison, color), CostsText(comparison, color)},
                       "\n");
}

}  // namespace terse
