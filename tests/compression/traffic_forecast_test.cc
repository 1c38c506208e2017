#include "compression/traffic_forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "compression/aggregate.h"
#include "compression/downstream.h"
#include "compression/run_codecs.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The perceptron of 784, 100 and 10 units.
const std::vector<int64_t> kPerceptron = {78400, 100, 1000, 10};

RunConfig RunOf(const std::string& codec, double density, int64_t updates,
                DownstreamMode downstream = DownstreamMode::kAuto) {
  RunConfig config;
  config.codec = SparseSpec(codec, density, "fp32", "auto");
  config.downstream = downstream;
  config.rounds.cohort = updates;
  return config;
}

TrafficForecast Forecast(const RunConfig& config, const Layout& layout) {
  absl::StatusOr<TrafficForecast> forecast = ForecastTraffic(config, layout);
  EXPECT_TRUE(forecast.ok()) << forecast.status();
  return *std::move(forecast);
}

// The bytes that a round of other updates than the forecast's really takes: bits an element, up and down.
struct RealRound {
  double up_bits;
  double down_bits;
};

RealRound RunRound(const RunConfig& config, const Layout& layout) {
  const std::unique_ptr<const Codec> codec = *MakeUpdateCodec(config, layout);
  Random random(77);
  std::vector<std::string> messages;
  double bytes = 0;
  for (int64_t i = 0; i < config.rounds.cohort; ++i) {
    EncodeOptions options;
    options.key.client = static_cast<uint64_t>(i);
    messages.push_back(
        *codec->Encode(RandomUpdate(layout.size(), &random, 0.01 * std::exp(random.Uniform(-0.4, 0.4))), options));
    bytes += static_cast<double>(messages.back().size());
  }
  const std::vector<absl::string_view> views(messages.begin(), messages.end());
  std::vector<float> average(layout.size());
  EXPECT_TRUE(AverageUpdates(*codec, views, {}, 1, absl::MakeSpan(average)).ok());
  const double size = static_cast<double>(layout.size());
  const std::string down = BuildDownstream(config.downstream, views, {}, average);
  return {8 * bytes / static_cast<double>(messages.size()) / size, 8.0 * static_cast<double>(down.size()) / size};
}

TEST(TrafficForecast, FitsTheUpdatesOfEveryCodecOfAFixedSize) {
  int fixed = 0;
  for (const std::string& name : CodecNames()) {
    for (const std::vector<int64_t>& sizes : {kPerceptron, LeNet5Sizes()}) {
      const Layout layout = MakeLayout(sizes);
      const RunConfig config = RunOf(name, 0.01, 1);
      const TrafficForecast forecast = Forecast(config, layout);
      if (!forecast.up_bits.has_value()) continue;
      ++fixed;
      const RealRound real = RunRound(config, layout);
      EXPECT_NEAR(*forecast.up_bits / real.up_bits, 1, 0.03) << name << " " << layout.size();
      const double down = *forecast.down_bits / real.down_bits;
      EXPECT_GT(down, 0.92) << name << " " << layout.size();
      EXPECT_TRUE(forecast.down_at_most || down < 1.08) << name << " " << layout.size() << ": " << down;
    }
  }
  EXPECT_GE(fixed, 2 * 13);
}

TEST(TrafficForecast, SaysWhereTheDataDecide) {
  const Layout layout = MakeLayout(kPerceptron);
  for (const char* name : {"strom", "adacomp", "mcgq", "sbc_or_stc"}) {
    const TrafficForecast forecast = Forecast(RunOf(name, 0.01, 4), layout);
    EXPECT_FALSE(forecast.up_bits.has_value()) << name;
    EXPECT_FALSE(forecast.down_bits.has_value()) << name;
    EXPECT_THAT(TrafficText(forecast, false), HasSubstr("sends what depends on the data and receives what depends"));
    // Whatever comes up, float32 goes down.
    EXPECT_EQ(*Forecast(RunOf(name, 0.01, 4, DownstreamMode::kDense), layout).down_bits, 32);
  }
  RunConfig elias = RunOf("qsgd", 0.01, 4);
  elias.codec.code = "elias";
  EXPECT_FALSE(Forecast(elias, layout).up_bits.has_value());
  RunConfig scheduled = RunOf("sbc", 0.01, 4);
  scheduled.control.name = "schedule";
  scheduled.control.density = {0.1, 0.01};
  EXPECT_FALSE(Forecast(scheduled, layout).up_bits.has_value());
  EXPECT_FALSE(Forecast(scheduled, layout).down_bits.has_value());
}

TEST(TrafficForecast, FitsWhatRoundsReallySendDown) {
  const Layout perceptron = MakeLayout(kPerceptron), small = MakeLayout({8000, 1000, 10});
  const auto check = [](const RunConfig& config, const Layout& layout) {
    const RealRound real = RunRound(config, layout);
    const TrafficForecast forecast = Forecast(config, layout);
    ASSERT_TRUE(forecast.down_bits.has_value() && !forecast.down_at_most) << config.codec.name;
    EXPECT_NEAR(*forecast.down_bits / real.down_bits, 1, 0.08)
        << config.codec.name << " " << config.codec.density << " " << config.rounds.cohort << " " << layout.size();
  };
  for (const int64_t updates : {1, 4, 10, 100}) {
    check(RunOf("sbc", 0.01, updates), perceptron);
    check(RunOf("sbc", 0.01, updates, DownstreamMode::kForward), perceptron);
    check(RunOf("top_k", 0.01, updates), perceptron);
  }
  for (const int64_t updates : {400, 1000}) check(RunOf("sbc", 0.01, updates), small);
  // A density at which the imitation would be too coarse.
  check(RunOf("top_k", 0.002, 1000), small);
  check(RunOf("signsgd", 1, 20), perceptron);
  check(RunOf("dense", 1, 3), perceptron);
  check(RunOf("fp16", 1, 5), perceptron);
}

TEST(TrafficForecast, CountsTheDownstreamCodec) {
  const Layout layout = MakeLayout(LeNet5Sizes());
  RunConfig config = RunOf("sbc", 0.01, 4, DownstreamMode::kCoded);
  config.downstream_codec = SparseSpec("stc", 0.02);
  Random random(3);
  const std::string message = *(*MakeDownstreamCodec(config, layout))->Encode(RandomUpdate(layout.size(), &random));
  const double real = 8.0 * static_cast<double>(message.size()) / static_cast<double>(layout.size());
  EXPECT_NEAR(*Forecast(config, layout).down_bits / real, 1, 0.03);
}

TEST(TrafficForecast, NamesWhatCostsATenth) {
  const Layout layout = MakeLayout(kPerceptron);
  EXPECT_EQ(Forecast(RunOf("sbc", 0.01, 4), layout).cheaper, "") << "stc takes about a quarter of four updates";
  const TrafficForecast large = Forecast(RunOf("sbc", 0.01, 100), layout);
  EXPECT_EQ(large.cheaper, "codec.downstream = 'stc' with downstream.density = 0.01");
  EXPECT_LT(large.cheaper_bits, *large.down_bits / 10);
  EXPECT_THAT(TrafficText(large, false),
              HasSubstr("\nwith codec.downstream = 'stc' with downstream.density = 0.01 it "));
  // One of those that lose nothing is enough.
  EXPECT_EQ(Forecast(RunOf("sbc", 0.001, 4, DownstreamMode::kDense), layout).cheaper, "codec.downstream = 'auto'");
}

TEST(TrafficForecast, KnowsTheMostWhereAStepIsNoAverage) {
  const Layout layout = MakeLayout(kPerceptron);
  RunConfig config = RunOf("sbc", 0.01, 4);
  config.aggregation.rule = "median";
  const TrafficForecast forecast = Forecast(config, layout);
  EXPECT_TRUE(forecast.down_at_most);
  EXPECT_EQ(*forecast.down_bits, 32);
  EXPECT_THAT(TrafficText(forecast, false), HasSubstr("receives at most about 318 kB a round (of 4 updates)\n"));
}

TEST(TrafficForecast, SpeaksOfAMillionParametersWhereTheModelIsUnknown) {
  const TrafficForecast forecast = Forecast(RunOf("sbc", 0.01, 4), MillionParameters());
  EXPECT_THAT(TrafficText(forecast, true), HasSubstr(" a round and million parameters (of 4 updates)\n"));
  const double bits = *Forecast(RunOf("sbc", 0.01, 4), MakeLayout({3'000'000})).up_bits;
  EXPECT_NEAR(*forecast.up_bits / bits, 1, 0.01);
}

}  // namespace
}  // namespace terse
