#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/heap_meter.h"
#include "bench/job.h"
#include "bench/measure.h"
#include "bench/sbc_client.h"

namespace terse {
namespace {

struct Case {
  bool large;
  double density;
  const char* positions;
  Target target;  // of the whole step over a memcpy
  int repetitions;
  double seconds;
};

std::vector<Metric> MeasureStep(const Case& step, const JobSetting& setting) {
  const Layout layout = step.large ? OneTensor(setting.large) : LeNet5Tensors();
  UpdateStream stream(layout.size(), 1);
  SbcClient client(layout, step.density, step.positions, &stream);
  client.WarmUp();
  const Ratio ratio = OverMemcpy(
      setting.Repetitions(step.repetitions), client.delta(), [&] { client.Train(); },
      [&] {
        client.Compress();
        client.Settle();
      });
  const std::string size = absl::StrCat("n=", layout.size());
  const std::string name = absl::StrCat("p=", step.density, " ", size, " ", step.positions);
  return {{"memcpy_ms", absl::StrCat(size, " beside ", name), 1e3 * ratio.memcpy_seconds, {}, {}},
          {"sbc_compress_ms", name, 1e3 * ratio.seconds, {}, {}},
          {"sbc_compress_over_memcpy", name, ratio.ratio, step.target, {}}};
}

// The most that a client's step takes beside its residual and its delta, caches included.
std::vector<Metric> MeasureMemory(const JobSetting& setting) {
  UpdateStream stream(setting.large, 1);
  const double tensor_bytes = static_cast<double>(sizeof(float)) * static_cast<double>(setting.large);
  std::vector<Metric> metrics;
  for (const double density : {0.01, 0.001}) {
    const int64_t before = HeapBytes();
    SbcClient client(OneTensor(setting.large), density, "rice", &stream);
    client.WarmUp();
    client.Train();
    ResetHeapPeak();
    client.Compress();
    client.Settle();
    const double extra = static_cast<double>(HeapPeakBytes() - before) - 2 * tensor_bytes;
    metrics.push_back({"extra_memory_over_tensor",
                       absl::StrCat("p=", density, " n=", setting.large),
                       std::max(0.0, extra) / tensor_bytes,
                       AtMost(0.10),
                       {}});
  }
  return metrics;
}

}  // namespace

std::vector<Job> PipelineJobs() {
  static const Case kCases[] = {
      {true, 0.01, "rice", AtMost(1.5), 21, 5},   {true, 0.001, "rice", AtMost(1.2), 21, 5},
      {false, 0.01, "rice", AtMost(4.0), 301, 1}, {false, 0.001, "rice", AtMost(4.0), 301, 1},
      {true, 0.01, "auto", AtMost(1.7), 15, 5},   {true, 0.001, "auto", AtMost(1.3), 15, 5},
      {false, 0.01, "auto", {}, 301, 1},          {false, 0.001, "auto", {}, 301, 1},
  };
  std::vector<Job> jobs;
  for (const Case& step : kCases) {
    jobs.push_back({{"memcpy_ms", "sbc_compress_ms", "sbc_compress_over_memcpy"},
                    absl::StrCat("compressing at p = ", step.density, ", positions ", step.positions),
                    step.seconds,
                    [&step](const JobSetting& setting) { return MeasureStep(step, setting); }});
  }
  jobs.push_back({{"extra_memory_over_tensor"}, "memory while compressing", 4, MeasureMemory});
  return jobs;
}

}  // namespace terse
