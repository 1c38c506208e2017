// The way in which the benchmarks take time: medians of repetitions, each beside a memcpy of the same tensor, so that a
// figure means the same on a quiet machine and on a busy one.
#ifndef TERSE_BENCH_MEASURE_H_
#define TERSE_BENCH_MEASURE_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace terse {

// Processor time of the calling thread, in seconds: other work on the machine does not count.
double ThreadSeconds();
// Processor time of all threads of the program together, in seconds.
double ProcessSeconds();
// Time of day, in seconds since some start: for what runs on several threads.
double WallSeconds();

// Returns the processor's name, "AMD EPYC 9B45", from the operating system; "unknown" where it does not say.
std::string CpuName();

// Returns the middle value, or the mean of the two in the middle. There is at least one value.
double Median(std::vector<double> values);

// Seconds of `work` by `clock`, each time after `prepare`, which is not timed; the median of `repetitions` >= 1.
double MedianSeconds(int repetitions, double (*clock)(), const std::function<void()>& prepare,
                     const std::function<void()>& work);

// A memcpy of a tensor to a second buffer. Not thread-safe.
class Memcpy {
 public:
  explicit Memcpy(int64_t floats) : to_(floats, 1.0f) {}

  // Thread seconds of one copy of `from`, which has as many floats.
  double Seconds(const std::vector<float>& from);

 private:
  std::vector<float> to_;
};

struct Ratio {
  double seconds = 0;         // of the work, median
  double memcpy_seconds = 0;  // median
  double ratio = 0;           // median over the repetitions of work / memcpy just before it
};

// Thread seconds of a memcpy of `tensor` and of `work`, each just after `prepare`, so that both find the tensor in the
// same caches.
Ratio OverMemcpy(int repetitions, const std::vector<float>& tensor, const std::function<void()>& prepare,
                 const std::function<void()>& work);

// Ends the program with the error; for calls that cannot fail on a benchmark's own input.
inline void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "terse-bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Must(absl::StatusOr<T> value) {
  Must(value.status());
  return *std::move(value);
}

}  // namespace terse

#endif  // TERSE_BENCH_MEASURE_H_
