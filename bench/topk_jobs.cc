#include "bench/job.h"

#ifdef TERSE_BENCH_LEARNING

#include "absl/strings/str_cat.h"
#include "bench/measure.h"
#include "bench/sbc_client.h"
#include "bench/topk_step.h"

namespace terse {
namespace {

std::vector<Metric> MeasureTopk(double density, const JobSetting& setting) {
  UpdateStream stream(setting.large, 1);
  SbcClient client(OneTensor(setting.large), density, "rice", &stream);
  const auto topk = MakeTopkStep(setting.large, static_cast<int64_t>(density * static_cast<double>(setting.large)));
  client.WarmUp();
  std::vector<double> speed_ups;
  for (int i = 0; i < setting.Repetitions(5); ++i) {
    client.Train();
    const std::vector<float> delta = client.delta();
    const double begin = ThreadSeconds();
    client.Compress();
    client.Settle();
    const double between = ThreadSeconds();
    topk->Run(delta);
    speed_ups.push_back((ThreadSeconds() - between) / (between - begin));
  }
  return {{"sbc_over_topk",
           absl::StrCat("p=", density, " n=", setting.large),
           Median(std::move(speed_ups)),
           density == 0.01 ? AtLeast(20) : Target(),
           {}}};
}

}  // namespace

std::vector<Job> TopkJobs() {
  std::vector<Job> jobs;
  for (const double density : {0.01, 0.001}) {
    jobs.push_back(
        {{"sbc_over_topk"}, absl::StrCat("at::topk at p = ", density), 15, [density](const JobSetting& setting) {
           return MeasureTopk(density, setting);
         }});
  }
  return jobs;
}

}  // namespace terse

#else

namespace terse {

std::vector<Job> TopkJobs() { return {}; }

}  // namespace terse

#endif
