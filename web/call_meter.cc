#include "web/call_meter.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/file_system.h"

namespace terse {
namespace {

// The buckets reach from a call that finds its answer in memory to a disk that struggles.
prometheus::Histogram::BucketBoundaries Buckets() {
  return {0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10};
}

}  // namespace

CallMeter::CallMeter(const std::string& prefix, const std::string& of, prometheus::Labels labels,
                     absl::Span<const char* const> watched, prometheus::Registry* registry)
    : labels_(std::move(labels)),
      times_(prometheus::BuildHistogram()
                 .Name(absl::StrCat(prefix, "_seconds"))
                 .Help(absl::StrCat("Time that a call of ", of, " took"))
                 .Register(*registry)),
      errors_(prometheus::BuildCounter()
                  .Name(absl::StrCat(prefix, "_errors_total"))
                  .Help(absl::StrCat("Calls of ", of, " that failed because of its disk or its files"))
                  .Register(*registry)) {
  for (const char* name : watched) errors_.Add(LabelsOf(name));
}

prometheus::Labels CallMeter::LabelsOf(absl::string_view name) const {
  prometheus::Labels labels = labels_;
  labels["call"] = std::string(name);
  return labels;
}

absl::Status CallMeter::Around(absl::string_view name, absl::FunctionRef<absl::Status()> call) {
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = call();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  times_.Add(LabelsOf(name), Buckets()).Observe(took.count());
  // Other statuses are answers: there is no such client, the log does not go back so far.
  if (IsDiskTrouble(status) || IsSyncFailure(status) || absl::IsDataLoss(status)) {
    errors_.Add(LabelsOf(name)).Increment();
  }
  return status;
}

}  // namespace terse
