#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/job.h"
#include "bench/measure.h"
#include "bench/sbc_client.h"
#include "compression/aggregate.h"

namespace terse {
namespace {

constexpr int kUpdates = 64;
constexpr double kDensity = 0.01;

// Different updates of one codec, in memory as a coordinator holds them.
struct Updates {
  explicit Updates(int64_t size) : codec(MakeSbc(OneTensor(size), kDensity, "rice")), sum(size) {
    UpdateStream stream(size, 1);
    for (int i = 0; i < kUpdates; ++i) {
      stream.Next(&sum);
      messages.push_back(Must(codec->Encode(sum, {})));
    }
    views.assign(messages.begin(), messages.end());
  }

  std::unique_ptr<const Codec> codec;
  std::vector<std::string> messages;
  std::vector<absl::string_view> views;
  std::vector<float> sum;
};

// Builds indexes with one place for each thread, as AverageUpdates makes them for a model of this size.
std::vector<UpdateIndex> BuildIndexes(const Updates& updates, int threads) {
  const int64_t spacing = (updates.codec->layout().size() + threads - 1) / threads;
  std::vector<UpdateIndex> indexes;
  for (absl::string_view message : updates.views) {
    indexes.push_back(Must(UpdateIndex::Build(*updates.codec, message, spacing)));
  }
  return indexes;
}

std::vector<Metric> MeasureAggregation(const JobSetting& setting) {
  Updates updates(setting.large);
  const auto nothing = [] {};
  const int repetitions = setting.Repetitions(11);
  const absl::Span<float> sum = absl::MakeSpan(updates.sum);
  const Ratio one_thread = OverMemcpy(repetitions, updates.sum, nothing,
                                      [&] { Must(AverageUpdates(*updates.codec, updates.views, {}, 1, sum)); });
  const Ratio imputed = OverMemcpy(repetitions, updates.sum, nothing, [&] {
    Must(ImputeUpdates(*updates.codec, updates.views, {}, /*trust=*/0.75f, 1, sum));
  });
  const std::vector<UpdateIndex> indexes = BuildIndexes(updates, setting.threads);
  const auto average = [&] { Must(AverageIndexed(*updates.codec, indexes, {}, setting.threads, sum)); };
  const double several = MedianSeconds(repetitions, WallSeconds, nothing, average);
  const double undisturbed = MedianSeconds(repetitions, ProcessSeconds, nothing, average) / setting.threads;
  const double validate = MedianSeconds(repetitions, ThreadSeconds, nothing, [&] {
    for (absl::string_view message : updates.views) Must(updates.codec->Validate(message));
  });
  const double index =
      MedianSeconds(repetitions, ThreadSeconds, nothing, [&] { BuildIndexes(updates, setting.threads); });
  const std::string name = absl::StrCat(kUpdates, " updates, p=", kDensity, " n=", setting.large);
  const std::string threads = absl::StrCat(name, ", ", setting.threads, " threads");
  return {{"aggregate_updates_s", absl::StrCat(name, ", 1 thread"), kUpdates / one_thread.seconds, AtLeast(2500), {}},
          // The ratio is that of all updates together.
          {"aggregate_over_memcpy", absl::StrCat(name, ", 1 thread"), one_thread.ratio, AtMost(2.6), {}},
          {"impute_over_memcpy", absl::StrCat(name, ", 1 thread"), imputed.ratio, {}, {}},
          {"aggregate_updates_s", threads, kUpdates / several, setting.threads == 2 ? AtLeast(4500) : Target(), {}},
          // The figure of an idle machine: neither other work nor imbalance of the threads counts.
          {"aggregate_updates_cpu_s", threads, kUpdates / undisturbed, {}, {}},
          {"validate_us", name, 1e6 * validate / kUpdates, {}, {}},
          {"index_us", threads, 1e6 * index / kUpdates, {}, {}},
          {"index_over_validate", threads, index / validate, {}, {}}};
}

// Measures how long one update takes to be added to a sum of the whole model.
std::vector<Metric> MeasureScatter(const JobSetting& setting) {
  UpdateStream stream(setting.large, 1);
  std::vector<float> sum(setting.large);
  std::vector<Metric> metrics;
  for (const double density : {0.01, 0.001}) {
    const std::unique_ptr<const Codec> codec = MakeSbc(OneTensor(setting.large), density, "rice");
    stream.Next(&sum);
    const std::string message = Must(codec->Encode(sum, {}));
    const double seconds = MedianSeconds(
        setting.Repetitions(51), ThreadSeconds, [] {},
        [&] { Must(codec->AddDecoded(message, 1.0f, absl::MakeSpan(sum))); });
    metrics.push_back({"decode_scatter_ns_per_nonzero",
                       absl::StrCat("p=", density, " n=", setting.large),
                       1e9 * seconds / (density * static_cast<double>(setting.large)),
                       {},
                       {}});
  }
  return metrics;
}

}  // namespace

std::vector<Job> AggregateJobs() {
  return {{{"aggregate_updates_s", "aggregate_over_memcpy", "impute_over_memcpy", "aggregate_updates_cpu_s",
            "validate_us", "index_us", "index_over_validate"},
           "adding up 64 updates",
           9,
           MeasureAggregation},
          {{"decode_scatter_ns_per_nonzero"}, "decoding into a sum", 2, MeasureScatter}};
}

}  // namespace terse
