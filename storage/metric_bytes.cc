#include "storage/metric_bytes.h"

#include "absl/strings/str_cat.h"
#include "storage/byte_io.h"

namespace terse {
namespace {

// Takes one metric off the front; false when there is none whole.
bool TakeMetric(absl::string_view* bytes, NamedMetric* metric) {
  if (bytes->size() < 2) return false;
  metric->kind = static_cast<MetricKind>(TakeField<uint8_t>(bytes));
  const auto name_bytes = TakeField<uint8_t>(bytes);
  if (bytes->size() < name_bytes + sizeof(double)) return false;
  metric->name = std::string(bytes->substr(0, name_bytes));
  bytes->remove_prefix(name_bytes);
  metric->value = TakeField<double>(bytes);
  return TakeVarint(bytes, &metric->samples);
}

}  // namespace

std::string SerializeMetrics(absl::Span<const NamedMetric> metrics) {
  std::string bytes;
  for (const NamedMetric& metric : metrics) {
    PutField(&bytes, static_cast<uint8_t>(metric.kind));
    PutField(&bytes, static_cast<uint8_t>(metric.name.size()));
    bytes += metric.name;
    PutField(&bytes, metric.value);
    PutVarint(&bytes, static_cast<uint64_t>(metric.samples));
  }
  return bytes;
}

absl::StatusOr<std::vector<NamedMetric>> ParseMetrics(absl::string_view bytes) {
  std::vector<NamedMetric> metrics;
  for (absl::string_view rest = bytes; !rest.empty();) {
    if (metrics.size() == kMostMetrics || !TakeMetric(&rest, &metrics.emplace_back())) {
      return absl::DataLossError("its metrics are not whole");
    }
  }
  if (const absl::Status sound = CheckMetrics(metrics); !sound.ok()) {
    return absl::DataLossError(absl::StrCat("its metrics are unsound: ", sound.message()));
  }
  // A number that is written longer than it need be was not written here.
  if (SerializeMetrics(metrics) != bytes) return absl::DataLossError("its metrics are written in another form");
  return metrics;
}

}  // namespace terse
