// The figures that a coordinator tells Prometheus.
#ifndef TERSE_BENCH_FLEET_METRICS_PAGE_H_
#define TERSE_BENCH_FLEET_METRICS_PAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace terse {

// Fetches PATH of "http://127.0.0.1:PORT/" in cleartext: a host in its place is not looked up. UNAVAILABLE when nobody
// answers, or not with 200.
absl::StatusOr<std::string> FetchPage(const std::string& url, absl::string_view path);

// The median of a histogram in Prometheus' text format, by straight lines within its buckets; that of all series of the
// name together. Beyond the last bound it is that bound. nullopt when there is no such histogram, or nothing in it.
absl::optional<double> MedianOfHistogram(absl::string_view page, absl::string_view name);

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_METRICS_PAGE_H_
