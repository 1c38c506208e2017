#include "tests/simulation/search.h"

#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/simulation/schedule.h"

namespace terse {
namespace {

class Searcher {
 public:
  explicit Searcher(const SearchOptions& options)
      : options_(options),
        deadline_(options.minutes > 0 ? absl::Now() + absl::Minutes(options.minutes) : absl::InfiniteFuture()) {}

  void Work() {
    while (true) {
      const absl::optional<uint64_t> seed = TakeSeed();
      if (!seed.has_value()) return;
      const ScheduleResult result = Schedule(*seed, options_.print).Run();
      Report(*seed, result);
    }
  }

  SearchResult result() {
    absl::MutexLock lock(&mutex_);
    return result_;
  }

 private:
  absl::optional<uint64_t> TakeSeed() {
    absl::MutexLock lock(&mutex_);
    if (result_.seed.has_value() || taken_ >= options_.schedules || absl::Now() >= deadline_) return absl::nullopt;
    return options_.first_seed + static_cast<uint64_t>(taken_++);
  }

  void Report(uint64_t seed, const ScheduleResult& result) {
    absl::MutexLock lock(&mutex_);
    result_.totals.Add(result.totals);
    if (result.violation.found() && (!result_.seed.has_value() || seed < *result_.seed)) {
      result_.seed = seed;
      result_.violation = result.violation;
    }
    if (options_.on_progress) options_.on_progress(result_.totals);
  }

  const SearchOptions& options_;
  const absl::Time deadline_;
  absl::Mutex mutex_;
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  SearchResult result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

SearchResult Search(const SearchOptions& options) {
  SetMutant(options.mutant);
  Searcher searcher(options);
  std::vector<std::thread> threads;
  for (int i = 0; i < options.threads; ++i) threads.emplace_back([&searcher] { searcher.Work(); });
  for (std::thread& thread : threads) thread.join();
  SetMutant(Mutant::kNone);
  return searcher.result();
}

std::string CommandFor(uint64_t seed, Mutant mutant) {
  std::string command = absl::StrCat("terse-schedules --schedules 1 --first-seed ", seed);
  if (mutant != Mutant::kNone) absl::StrAppend(&command, " --mutant ", kMutantNames[static_cast<size_t>(mutant)]);
  return absl::StrCat(command, " --trace");
}

}  // namespace terse
