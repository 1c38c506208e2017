// Speed of the codecs on LeNet5's layout and on 25.6 million parameters (ResNet50's size), next to a memcpy of the same
// update. `x_memcpy` is the time divided by that of a memcpy measured in the same run.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "compression/codec_table.h"
#include "compression/downstream.h"
#include "core/layout.h"
#include "core/random.h"

namespace terse {
namespace {

// Processor time of this thread, in seconds: other work on the machine does not count.
double Now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Layout MakeLayout(int64_t which) {
  if (which == 0) {
    return *Layout::Create({{"conv1.weight", {20, 1, 5, 5}},
                            {"conv1.bias", {20}},
                            {"conv2.weight", {50, 20, 5, 5}},
                            {"conv2.bias", {50}},
                            {"fc1.weight", {500, 800}},
                            {"fc1.bias", {500}},
                            {"fc2.weight", {10, 500}},
                            {"fc2.bias", {10}}});
  }
  return *Layout::Create({{"weight", {25600000}}});
}

// Laplace, the usual picture of weight updates.
std::vector<float> MakeUpdate(int64_t size, uint64_t seed) {
  Random random(seed);
  std::vector<float> update(size);
  for (float& value : update) {
    const double magnitude = -std::log(1 - random.Uniform());
    value = static_cast<float>(random.Below(2) == 0 ? magnitude : -magnitude);
  }
  return update;
}

double MemcpySeconds(const std::vector<float>& update) {
  std::vector<float> copy(update.size());
  double best = 1e9;
  for (int i = 0; i < 10; ++i) {
    const double start = Now();
    std::memcpy(copy.data(), update.data(), update.size() * sizeof(float));
    benchmark::DoNotOptimize(copy.data());
    benchmark::ClobberMemory();
    best = std::min(best, Now() - start);
  }
  return best;
}

// What every benchmark here works on. Arguments: layout (0 LeNet5, 1 large), 1 / density, codec (0 sbc, 1 dense).
struct Setup {
  explicit Setup(const benchmark::State& state)
      : codec(*MakeCodec({state.range(2) == 0 ? "sbc" : "dense", 1.0 / static_cast<double>(state.range(1)), "fp32"},
                         MakeLayout(state.range(0)))),
        update(MakeUpdate(codec->layout().size(), 1)),
        message(*codec->Encode(update)),
        memcpy_seconds(MemcpySeconds(update)) {}

  // After the loop; each iteration has handled so many updates.
  void Report(benchmark::State& state, double updates) const {
    state.counters["message_bytes"] = static_cast<double>(message.size());
    const double seconds = Now() - start;
    state.counters["x_memcpy"] = seconds / (static_cast<double>(state.iterations()) * updates * memcpy_seconds);
  }

  std::unique_ptr<const Codec> codec;
  std::vector<float> update;
  std::string message;
  double memcpy_seconds;
  double start = Now();
};

void Encode(benchmark::State& state) {
  const Setup setup(state);
  for (auto _ : state) benchmark::DoNotOptimize(setup.codec->Encode(setup.update));
  setup.Report(state, 1);
}

void Validate(benchmark::State& state) {
  const Setup setup(state);
  for (auto _ : state) benchmark::DoNotOptimize(setup.codec->Validate(setup.message));
  setup.Report(state, 1);
}

void Decode(benchmark::State& state) {
  Setup setup(state);
  std::vector<float> sum(setup.update.size());
  setup.start = Now();
  for (auto _ : state) benchmark::DoNotOptimize(setup.codec->AddDecoded(setup.message, 1.0f, absl::MakeSpan(sum)));
  setup.Report(state, 1);
}

// Sixteen updates into one average; x_memcpy is for one of them.
void Aggregate(benchmark::State& state) {
  Setup setup(state);
  std::vector<std::string> messages;
  for (int i = 0; i < 16; ++i) messages.push_back(*setup.codec->Encode(MakeUpdate(setup.update.size(), 2 + i)));
  const std::vector<absl::string_view> views(messages.begin(), messages.end());
  std::vector<float> average(setup.update.size());
  setup.start = Now();
  for (auto _ : state) {
    benchmark::DoNotOptimize(AverageUpdates(*setup.codec, views, absl::MakeSpan(average)));
  }
  setup.Report(state, static_cast<double>(messages.size()));
}

void Cases(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"layout", "1/p", "dense"})->Unit(benchmark::kMicrosecond);
  for (int64_t layout : {0, 1}) {
    benchmark->Args({layout, 1000, 0})->Args({layout, 100, 0})->Args({layout, 1, 1});
  }
}

BENCHMARK(Encode)->Apply(Cases);
BENCHMARK(Validate)->Apply(Cases);
BENCHMARK(Decode)->Apply(Cases);
BENCHMARK(Aggregate)
    ->ArgNames({"layout", "1/p", "dense"})
    ->Unit(benchmark::kMicrosecond)
    ->Args({0, 100, 0})
    ->Args({1, 1000, 0});

}  // namespace
}  // namespace terse

BENCHMARK_MAIN();
