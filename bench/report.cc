#include "bench/report.h"

#include <algorithm>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace terse {
namespace {

using Row = std::vector<std::string>;

// Four digits, and all those before the point.
std::string Digits(double value) {
  return value >= 1000 ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.4g", value);
}

std::string Asked(const Target& target) {
  if (target.kind == Target::kNone) return "";
  return absl::StrCat(target.kind == Target::kAtMost ? "<= " : ">= ", target.value);
}

// Columns are padded, so that it reads well as plain text too.
void PrintTable(const std::vector<Row>& rows, std::ostream* out) {
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto print = [&](const Row& row) {
    for (size_t i = 0; i < row.size(); ++i) *out << "| " << row[i] << std::string(widths[i] - row[i].size() + 1, ' ');
    *out << "|\n";
  };
  print(rows[0]);
  for (size_t width : widths) *out << "|" << std::string(width + 2, '-');
  *out << "|\n";
  std::for_each(rows.begin() + 1, rows.end(), print);
}

// The metrics of one table: a row for each setting, a column for each name, in the order of their coming.
std::vector<Row> Pivot(const std::vector<Metric>& metrics, const std::string& table) {
  std::vector<Row> rows = {{table}};
  std::map<std::string, size_t> row_of, column_of;
  for (const Metric& metric : metrics) {
    if (metric.table != table) continue;
    if (column_of.emplace(metric.name, rows[0].size()).second) rows[0].push_back(metric.name);
    if (row_of.emplace(metric.setting, rows.size()).second) rows.push_back({metric.setting});
    Row& row = rows[row_of[metric.setting]];
    row.resize(std::max(row.size(), column_of[metric.name] + 1));
    const std::string missed = metric.met() ? "" : absl::StrCat(" (NO: ", Asked(metric.target), ")");
    row[column_of[metric.name]] = absl::StrCat(Digits(metric.value), missed);
  }
  for (Row& row : rows) row.resize(rows[0].size());
  return rows;
}

}  // namespace

bool Metric::met() const {
  if (target.kind == Target::kNone) return true;
  return target.kind == Target::kAtMost ? value <= target.value : value >= target.value;
}

bool Report::met() const {
  return absl::c_all_of(metrics, [](const Metric& metric) { return metric.met(); });
}

void Report::PrintTables(std::ostream* out) const {
  if (!subject.empty()) *out << subject << "\n\n";
  if (!cpu.empty()) *out << "processor: " << cpu << "; SIMD: " << simd << "\n\n";
  std::vector<Row> lines = {{"figure", "setting", "value", "target", "met"}};
  std::vector<std::string> tables;
  for (const Metric& metric : metrics) {
    if (!metric.table.empty()) {
      if (!absl::c_linear_search(tables, metric.table)) tables.push_back(metric.table);
      continue;
    }
    const char* met = metric.target.kind == Target::kNone ? "" : metric.met() ? "yes" : "NO";
    lines.push_back({metric.name, metric.setting, Digits(metric.value), Asked(metric.target), met});
  }
  if (lines.size() > 1) PrintTable(lines, out);
  for (const std::string& table : tables) {
    if (lines.size() > 1 || table != tables.front()) *out << "\n";
    PrintTable(Pivot(metrics, table), out);
  }
}

void Report::PrintJson(std::ostream* out) const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!subject.empty()) json["subject"] = subject;
  if (!cpu.empty()) json.update({{"cpu", cpu}, {"simd", simd}});
  json["met"] = met();
  json["metrics"] = nlohmann::ordered_json::array();
  for (const Metric& metric : metrics) {
    nlohmann::ordered_json entry = {{"name", metric.name}, {"setting", metric.setting}, {"value", metric.value}};
    if (!metric.table.empty()) entry["table"] = metric.table;
    if (metric.target.kind != Target::kNone) {
      entry[metric.target.kind == Target::kAtMost ? "at_most" : "at_least"] = metric.target.value;
      entry["met"] = metric.met();
    }
    json["metrics"].push_back(std::move(entry));
  }
  *out << json.dump(2) << "\n";
}

}  // namespace terse
