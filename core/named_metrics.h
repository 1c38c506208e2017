// Figures that trainers and evaluators report by name, such as "accuracy", beside the training loss that every trainer
// reports. Names are the user's own.
#ifndef TERSE_CORE_NAMED_METRICS_H_
#define TERSE_CORE_NAMED_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace terse {

// On which weights and data a figure was taken. The numbers are those of storage/SCHEMA.md and of fleet.proto.
enum class MetricKind : uint8_t {
  kTraining = 1,    // by a client, over the examples that its training saw
  kEvaluation = 2,  // by a client, of the weights that the round began with, on data of its own
  kTest = 3,        // by the coordinator's evaluator, of the weights that the round ended with
};
// "training", "evaluation", "test"; empty for what is none of them.
absl::string_view MetricKindName(MetricKind kind);
absl::optional<MetricKind> MetricKindNamed(absl::string_view name);

struct NamedMetric {
  MetricKind kind = MetricKind::kTraining;
  std::string name;
  double value = 0;
  int64_t samples = 0;  // examples over which `value` is the mean: its weight in a mean over clients
};

inline bool operator==(const NamedMetric& a, const NamedMetric& b) {
  return a.kind == b.kind && a.name == b.name && a.value == b.value && a.samples == b.samples;
}

// The most of one update or evaluation.
inline constexpr size_t kMostMetrics = 64;
// The most different figures of a round; those that the fewest clients report go first.
inline constexpr size_t kMostMetricMeans = 256;
inline constexpr size_t kMostMetricNameBytes = 64;
// Of a value's magnitude, so that no mean overflows.
inline constexpr double kMostMetricValue = 1e300;
// Above any number of examples, and low enough that the sum over a fleet does not overflow.
inline constexpr int64_t kMostMetricSamples = int64_t{1} << 40;

// Whether a metric may be called so: 1 to 64 of the characters A-Z a-z 0-9 _ - . / @ and space, the first and the last
// of them no space.
bool IsMetricName(absl::string_view name);

// INVALID_ARGUMENT, with the metric and what is wrong with it, unless there are at most kMostMetrics, names are
// IsMetricName, no two of one kind are the same, values are finite and within bounds, and samples are from 1 on.
absl::Status CheckMetrics(absl::Span<const NamedMetric> metrics);

// A figure of a round over the clients that reported it.
struct MetricMean {
  MetricKind kind = MetricKind::kTraining;
  std::string name;
  double mean = 0;      // weighed by the samples
  int64_t clients = 0;  // that reported it; 0 where the coordinator's evaluator did
  int64_t samples = 0;  // of all of them
};

// Returns the means over the clients of a round, one span each, ordered by kind and name: at most kMostMetricMeans. All
// have passed CheckMetrics. The order of the clients does not matter but for rounding.
std::vector<MetricMean> MeanMetrics(absl::Span<const absl::Span<const NamedMetric>> clients);

}  // namespace terse

#endif  // TERSE_CORE_NAMED_METRICS_H_
