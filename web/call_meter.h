// Times the calls of something that a disk is behind, and counts those that the disk failed.
#ifndef TERSE_WEB_CALL_METER_H_
#define TERSE_WEB_CALL_METER_H_

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace terse {

// The series PREFIX_seconds and PREFIX_errors_total, with `labels` and the name of the call as `call`. Thread-safe.
class CallMeter {
 public:
  // `of` is what is called, for the series' help: "the run's store". The errors of `watched` are 0 from the start,
  // since an alert sees the first one only where there was a 0 before. `registry` must outlive the meter.
  CallMeter(const std::string& prefix, const std::string& of, prometheus::Labels labels,
            absl::Span<const char* const> watched, prometheus::Registry* registry);

  // Makes the call of this name in the caller's thread; its status.
  absl::Status Around(absl::string_view name, absl::FunctionRef<absl::Status()> call);

 private:
  prometheus::Labels LabelsOf(absl::string_view name) const;

  const prometheus::Labels labels_;
  prometheus::Family<prometheus::Histogram>& times_;
  prometheus::Family<prometheus::Counter>& errors_;
};

}  // namespace terse

#endif  // TERSE_WEB_CALL_METER_H_
