// Named metrics as bytes, in manifests and in the rows of clients' updates (storage/SCHEMA.md, "Bytes of metrics").
// Internal to storage/.
#ifndef TERSE_STORAGE_METRIC_BYTES_H_
#define TERSE_STORAGE_METRIC_BYTES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/named_metrics.h"

namespace terse {

// The most that SerializeMetrics makes: kind, length of the name, name, value and a varint of samples for each.
inline constexpr size_t kMostMetricsBytes = kMostMetrics * (1 + 1 + kMostMetricNameBytes + 8 + 6);

// `metrics` pass CheckMetrics. No bytes for none.
std::string SerializeMetrics(absl::Span<const NamedMetric> metrics);

// DATA_LOSS, with the reason, unless the bytes are what SerializeMetrics makes.
absl::StatusOr<std::vector<NamedMetric>> ParseMetrics(absl::string_view bytes);

}  // namespace terse

#endif  // TERSE_STORAGE_METRIC_BYTES_H_
