#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "bench/heap_meter.h"
#include "bench/job.h"
#include "bench/measure.h"
#include "bench/sbc_client.h"
#include "compression/aggregate.h"
#include "compression/bit_stream.h"
#include "compression/downstream.h"

namespace terse {
namespace {

constexpr double kDensity = 0.01;
constexpr char kTable[] = "downstream of one round, bytes";

// The perceptron of 784, 100 and 10 units.
Layout PerceptronTensors() {
  return *Layout::Create({{"0.weight", {100, 784}}, {"0.bias", {100}}, {"1.weight", {10, 100}}, {"1.bias", {10}}});
}

// A round's updates and their average.
struct Round {
  std::vector<std::string> messages;
  std::vector<absl::string_view> views;
  std::vector<float> average;
};

// Clients whose updates lie at random positions and are of different sizes and signs, as means of real ones are.
Round MakeRound(const Codec& codec, int64_t clients) {
  Round round;
  round.average.resize(codec.layout().size());
  UpdateStream stream(codec.layout().size(), 1);
  Random sizes(2);
  for (int64_t i = 0; i < clients; ++i) {
    stream.Next(&round.average);
    const float size = static_cast<float>(std::exp(sizes.Uniform(-0.5, 0.5)) * (sizes.Below(2) == 0 ? 1 : -1));
    for (float& value : round.average) value *= size;
    round.messages.push_back(Must(codec.Encode(round.average, {})));
  }
  round.views.assign(round.messages.begin(), round.messages.end());
  Must(AverageUpdates(codec, round.views, {}, 1, absl::MakeSpan(round.average)));
  return round;
}

// The entropy of the clients' random positions alone, all forwarded: log2 C(n,k) for every tensor and client.
double ForwardEntropyBytes(const Layout& layout, int64_t clients) {
  double bits = 0;
  for (const TensorSpec& tensor : layout.tensors()) {
    const int64_t count = std::max<int64_t>(1, std::llround(kDensity * static_cast<double>(tensor.size)));
    bits += static_cast<double>(count) * PositionEntropy(count, tensor.size);
  }
  return bits * static_cast<double>(clients) / 8;
}

// The entropy of the elements of the step: log2 C(n,c) for their positions, and the entropy of their values, either
// whole or of sign and exponent, whichever is less; neither tables of symbols nor headers count.
double StepEntropyBytes(absl::Span<const float> step) {
  std::map<uint32_t, double> values, octaves;
  double listed = 0;
  for (const float value : step) {
    if (FloatBits(value) == 0) continue;
    ++values[FloatBits(value)];
    ++octaves[FloatBits(value) >> 23];
    ++listed;
  }
  if (listed == 0) return 0;
  const auto entropy = [&](const std::map<uint32_t, double>& counts) {
    double bits = 0;
    for (const auto& [symbol, count] : counts) bits += count * std::log2(listed / count);
    return bits;
  };
  // Whole values that occur once are as long in the table as here, so a table costs what it saves.
  const double whole = entropy(values) + 32.0 * static_cast<double>(values.size());
  const double positions = listed * PositionEntropy(static_cast<int64_t>(listed), static_cast<int64_t>(step.size()));
  return (positions + std::min(whole, entropy(octaves) + 23 * listed)) / 8;
}

// One row: the bytes of every exact form.
void AddForms(const Layout& layout, int64_t clients, std::vector<Metric>* metrics) {
  const std::unique_ptr<const Codec> codec = MakeSbc(layout, kDensity, "auto");
  const Round round = MakeRound(*codec, clients);
  const std::string setting = absl::StrCat("sbc p=", kDensity, ", n=", layout.size(), ", ", clients, " clients");
  const auto bytes = [&](const std::string& message) { return static_cast<double>(message.size()); };
  const std::string sparse = BuildStepDownstream(DownstreamMode::kAuto, round.average);
  const double listed = static_cast<double>(
      std::count_if(round.average.begin(), round.average.end(), [](float value) { return FloatBits(value) != 0; }));
  const auto add = [&](const std::string& name, double value) {
    metrics->push_back({name, setting, value, {}, kTable});
  };
  add("downstream_union", listed / static_cast<double>(layout.size()));
  add("downstream_forward", bytes(BuildDownstream(DownstreamMode::kForward, round.views, {}, round.average)));
  add("downstream_forward_entropy", ForwardEntropyBytes(layout, clients));
  add("downstream_sparse", bytes(sparse));
  add("downstream_sparse_entropy", StepEntropyBytes(round.average));
  add("downstream_dense", bytes(BuildDenseDownstream(round.average)));
  add("downstream_auto", bytes(BuildDownstream(DownstreamMode::kAuto, round.views, {}, round.average)));
}

std::vector<Metric> MeasureForms(const JobSetting& setting) {
  std::vector<Metric> metrics;
  const bool quick = setting.large != kLargeTensor;
  for (const Layout& layout : {PerceptronTensors(), LeNet5Tensors()}) {
    for (const int64_t clients : {4, 10, 100, 400, 1000}) {
      if (!quick || (clients <= 10 && layout.size() < 100'000)) AddForms(layout, clients, &metrics);
    }
  }
  return metrics;
}

// Building and applying the sparse step, beside a memcpy of the model.
std::vector<Metric> MeasureSparseStep(const JobSetting& setting) {
  std::vector<Metric> metrics;
  const std::unique_ptr<const Codec> codec = MakeSbc(OneTensor(setting.large), kDensity, "rice");
  for (const int clients : {1, 16, 64}) {
    const Round round = MakeRound(*codec, clients);
    std::string message;
    const Ratio build = OverMemcpy(
        setting.Repetitions(7), round.average, [&] { message = std::string(); },
        [&] { message = BuildStepDownstream(DownstreamMode::kAuto, round.average); });
    message = std::string();
    const int64_t before = HeapBytes();
    ResetHeapPeak();
    message = BuildStepDownstream(DownstreamMode::kAuto, round.average);
    const int64_t extra = HeapPeakBytes() - before - static_cast<int64_t>(message.size());
    std::vector<float> weights(setting.large), step;
    const Ratio apply = OverMemcpy(
        setting.Repetitions(7), round.average, [] {},
        [&] { Must(ApplyDownstream(*codec, message, &step, absl::MakeSpan(weights))); });
    const std::string name = absl::StrCat(clients, " updates, p=", kDensity, " n=", setting.large);
    metrics.push_back({"sparse_build_over_memcpy", name, build.ratio, {}, {}});
    metrics.push_back({"sparse_apply_over_memcpy", name, apply.ratio, {}, {}});
    metrics.push_back({"sparse_build_extra_over_model",
                       name,
                       static_cast<double>(extra) / (4.0 * static_cast<double>(setting.large)),
                       {},
                       {}});
  }
  return metrics;
}

}  // namespace

std::vector<Job> DownstreamJobs() {
  return {{{"downstream_union", "downstream_forward", "downstream_forward_entropy", "downstream_sparse",
            "downstream_sparse_entropy", "downstream_dense", "downstream_auto"},
           "the forms of a downstream message",
           60,
           MeasureForms},
          {{"sparse_build_over_memcpy", "sparse_apply_over_memcpy", "sparse_build_extra_over_model"},
           "sparse steps",
           20,
           MeasureSparseStep}};
}

}  // namespace terse
