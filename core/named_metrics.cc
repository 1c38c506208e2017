#include "core/named_metrics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace terse {
namespace {

constexpr MetricKind kMetricKinds[] = {MetricKind::kTraining, MetricKind::kEvaluation, MetricKind::kTest};

absl::Status WrongMetric(const NamedMetric& metric, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the ", MetricKindName(metric.kind), " metric '", metric.name, "' ", what));
}

absl::Status CheckMetric(const NamedMetric& metric) {
  if (MetricKindName(metric.kind).empty()) {
    return absl::InvalidArgumentError(absl::StrCat("a metric is of the unknown kind ", static_cast<int>(metric.kind)));
  }
  if (!IsMetricName(metric.name)) {
    return absl::InvalidArgumentError(absl::StrCat("a metric's name has 1 to ", kMostMetricNameBytes,
                                                   " of the characters A-Z a-z 0-9 _ - . / @ and inner spaces"));
  }
  if (!std::isfinite(metric.value)) return WrongMetric(metric, "is not finite");
  if (std::abs(metric.value) > kMostMetricValue) return WrongMetric(metric, "is beyond 1e300");
  if (metric.samples < 1 || metric.samples > kMostMetricSamples) {
    return WrongMetric(metric, absl::StrCat("is a mean over ", metric.samples, " samples, which is impossible"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view MetricKindName(MetricKind kind) {
  switch (kind) {
    case MetricKind::kTraining:
      return "training";
    case MetricKind::kEvaluation:
      return "evaluation";
    case MetricKind::kTest:
      return "test";
  }
  return "";
}

absl::optional<MetricKind> MetricKindNamed(absl::string_view name) {
  for (const MetricKind kind : kMetricKinds) {
    if (MetricKindName(kind) == name) return kind;
  }
  return absl::nullopt;
}

bool IsMetricName(absl::string_view name) {
  if (name.empty() || name.size() > kMostMetricNameBytes || name.front() == ' ' || name.back() == ' ') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("_-./@ ").find(c) != absl::string_view::npos;
  });
}

absl::Status CheckMetrics(absl::Span<const NamedMetric> metrics) {
  if (metrics.size() > kMostMetrics) {
    return absl::InvalidArgumentError(
        absl::StrCat(metrics.size(), " metrics are more than the ", kMostMetrics, " that may come together"));
  }
  std::set<std::pair<MetricKind, absl::string_view>> seen;
  for (const NamedMetric& metric : metrics) {
    const absl::Status sound = CheckMetric(metric);
    if (!sound.ok()) return sound;
    if (!seen.insert({metric.kind, metric.name}).second) return WrongMetric(metric, "is there twice");
  }
  return absl::OkStatus();
}

std::vector<MetricMean> MeanMetrics(absl::Span<const absl::Span<const NamedMetric>> clients) {
  std::map<std::pair<MetricKind, absl::string_view>, MetricMean> by_name;
  for (const absl::Span<const NamedMetric> metrics : clients) {
    for (const NamedMetric& metric : metrics) {
      MetricMean& mean = by_name[{metric.kind, metric.name}];
      ++mean.clients;
      mean.samples += metric.samples;
      mean.mean +=
          (metric.value - mean.mean) * (static_cast<double>(metric.samples) / static_cast<double>(mean.samples));
    }
  }
  std::vector<MetricMean> means;
  for (auto& [key, mean] : by_name) {
    mean.kind = key.first;
    mean.name = std::string(key.second);
    means.push_back(std::move(mean));
  }
  if (means.size() <= kMostMetricMeans) return means;
  std::stable_sort(means.begin(), means.end(),
                   [](const MetricMean& a, const MetricMean& b) { return a.clients > b.clients; });
  means.resize(kMostMetricMeans);
  std::sort(means.begin(), means.end(), [](const MetricMean& a, const MetricMean& b) {
    return std::make_pair(a.kind, absl::string_view(a.name)) < std::make_pair(b.kind, absl::string_view(b.name));
  });
  return means;
}

}  // namespace terse
