#include "bench/measure.h"

#include <time.h>

#include <cstring>
#include <fstream>

#include "core/median.h"

namespace terse {
namespace {

double Seconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double ThreadSeconds() { return Seconds(CLOCK_THREAD_CPUTIME_ID); }
double ProcessSeconds() { return Seconds(CLOCK_PROCESS_CPUTIME_ID); }
double WallSeconds() { return Seconds(CLOCK_MONOTONIC); }

std::string CpuName() {
  std::ifstream cpus("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpus, line)) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

double Median(std::vector<double> values) { return MedianOf(absl::MakeSpan(values)); }

double MedianSeconds(int repetitions, double (*clock)(), const std::function<void()>& prepare,
                     const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int i = 0; i < repetitions; ++i) {
    prepare();
    const double start = clock();
    work();
    seconds.push_back(clock() - start);
  }
  return Median(std::move(seconds));
}

double Memcpy::Seconds(const std::vector<float>& from) {
  const double start = ThreadSeconds();
  std::memcpy(to_.data(), from.data(), to_.size() * sizeof(float));
  asm volatile("" : : "r"(to_.data()) : "memory");  // somebody may read the copy: it must be made
  return ThreadSeconds() - start;
}

Ratio OverMemcpy(int repetitions, const std::vector<float>& tensor, const std::function<void()>& prepare,
                 const std::function<void()>& work) {
  Memcpy memcpy(static_cast<int64_t>(tensor.size()));
  std::vector<double> seconds, copies, ratios;
  for (int i = 0; i < repetitions; ++i) {
    prepare();
    copies.push_back(memcpy.Seconds(tensor));
    seconds.push_back(MedianSeconds(1, ThreadSeconds, prepare, work));
    ratios.push_back(seconds.back() / copies.back());
  }
  return {Median(std::move(seconds)), Median(std::move(copies)), Median(std::move(ratios))};
}

}  // namespace terse
