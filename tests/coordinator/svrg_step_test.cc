#include "coordinator/svrg_step.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "compression/choice_codec.h"
#include "compression/low_precision.h"
#include "compression/run_codecs.h"
#include "core/codec_choices.h"
#include "core/epochs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/synthetic_logistic.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunConfig Svrg(int64_t epoch_length, const std::string& optimizer = "svrg") {
  RunConfig config;
  config.seed = 3;
  config.rounds.buffered = true;
  config.codec.name = "dense";
  config.codec.feedback = "discard";
  config.downstream = DownstreamMode::kDense;
  config.server.name = optimizer;
  config.server.learning_rate = 0.25;
  config.server.epoch_length = epoch_length;
  return config;
}

RunConfig Quantized(RunConfig config, int64_t model_bits) {
  config.downstream = DownstreamMode::kCoded;
  config.downstream_codec.name = "low_precision";
  config.downstream_codec.grouping = "global";
  config.downstream_codec.bits = model_bits;
  return config;
}

// The server's step with what clients hold.
class Master {
 public:
  Master(const RunConfig& config, const Layout& layout, std::vector<float> start)
      : config_(config),
        updates_(*MakeUpdateCodec(config, layout)),
        coded_(*MakeDownstreamCodec(config, layout)),
        step_(*ServerStep::Make(config, {*updates_, coded_.get()})),
        weights_(std::move(start)) {
    EXPECT_EQ(step_->Restore(weights_, {}), absl::OkStatus());
  }

  absl::Status Give(const std::vector<float>& gradient) {
    EncodeOptions options;
    options.key = {config_.seed, static_cast<uint64_t>(version_) + 1, 0};
    const bool full = TaskFrom(config_, version_) == ClientTask::kFullGradient;
    options.choice = full ? kFullGradientChoice : kGradientStepChoice;
    const std::string message = *updates_->Encode(gradient, options);
    absl::StatusOr<ServerStep::Result> made =
        step_->MakeStep(version_, weights_, {absl::string_view(message)}, {}, 0, 0);
    if (!made.ok()) return made.status();
    EXPECT_EQ(step_->Apply(made->downstream, absl::MakeSpan(weights_)), absl::OkStatus());
    EXPECT_EQ(made->weights, weights_) << "what clients make of the message";
    aggregates.push_back(step_->RoundMessages({absl::string_view(message)}, {}, 0));
    sent.push_back(std::move(made->downstream));
    ++version_;
    return absl::OkStatus();
  }

  const std::vector<float>& weights() const { return weights_; }
  ServerStep& step() { return *step_; }

  std::vector<std::string> sent, aggregates;

 private:
  const RunConfig config_;
  const std::unique_ptr<const Codec> updates_, coded_;
  const std::unique_ptr<ServerStep> step_;
  std::vector<float> weights_;
  int64_t version_ = 0;
};

const Layout& Tiny() {
  static const Layout* const layout = new Layout(*Layout::Create({{"weight", {1, 2}}, {"bias", {1}}}));
  return *layout;
}

TEST(SvrgStep, FollowsAlgorithm1) {
  RunConfig config = Svrg(2);
  config.train.optimizer.l1 = 0.5;  // eta * l1 = 0.125
  Master master(config, Tiny(), {1, -1, 2});
  ASSERT_EQ(master.Give({4, 0, 1}), absl::OkStatus());
  EXPECT_THAT(master.weights(), ElementsAre(1, -1, 2)) << "x_0 = x~";
  EXPECT_EQ(master.sent.back().size(), 1) << "a flag";
  ASSERT_EQ(master.Give({0, 0, 1}), absl::OkStatus());
  // x_0 - 0.25 * (zeta + g) = {0, -1, 1.5}; the bias is not penalised.
  EXPECT_THAT(master.weights(), ElementsAre(0, -0.875, 1.5));
  ASSERT_EQ(master.Give({-8, 0, 1}), absl::OkStatus());
  EXPECT_THAT(master.weights(), ElementsAre(0.875, -0.75, 1));
  EXPECT_EQ(master.sent.back().size(), 13) << "a snapshot";
  // The next epoch's gradient counts from here on.
  ASSERT_EQ(master.Give({0, 0, 4}), absl::OkStatus());
  EXPECT_THAT(master.weights(), ElementsAre(0.875, -0.75, 1));
  ASSERT_EQ(master.Give({0, 0, 0}), absl::OkStatus());
  EXPECT_THAT(master.weights(), ElementsAre(0.75, -0.625, 0));
}

TEST(SvrgStep, FollowsAlgorithm3) {
  const RunConfig config = Svrg(3, "acc_svrg");
  Master master(config, Tiny(), {1, 2, 3});
  Random random(5);
  std::vector<double> snapshot = {1, 2, 3}, y = snapshot, g(3), mean(3);
  for (int64_t version = 0; version < 16; ++version) {
    std::vector<float> gradient;
    for (int k = 0; k < 3; ++k) gradient.push_back(static_cast<float>(random.Uniform(-1, 1)));
    ASSERT_EQ(master.Give(gradient), absl::OkStatus());
    const int64_t t = version % 4;
    const double theta = 2.0 / static_cast<double>(version / 4 + 3), eta = 0.25 / theta;
    for (int k = 0; k < 3; ++k) {
      if (t == 0) {
        g[k] = gradient[k];
        mean[k] = 0;
      } else {
        y[k] -= eta * (gradient[k] + g[k]);
        mean[k] += y[k] / 3;
      }
      const double x = snapshot[k] + theta * ((t == 3 ? mean[k] : y[k]) - snapshot[k]);
      EXPECT_NEAR(master.weights()[k], x, 1e-5) << version << " " << k;
      if (t == 3) snapshot[k] = x;
    }
  }
}

TEST(SvrgStep, GoesOnFromASnapshotAndTheRoundsSince) {
  for (const char* optimizer : {"svrg", "acc_svrg"}) {
    for (const int64_t bits : {0, 8}) {
      const RunConfig config = bits == 0 ? Svrg(3, optimizer) : Quantized(Svrg(3, optimizer), bits);
      Master master(config, Tiny(), {1, 2, 3});
      Random random(5);
      std::vector<float> weights, state;
      for (int64_t version = 0; version < 11; ++version) {
        if (version == 8) {
          weights = master.weights();
          state = master.step().state().Copy();
        }
        const auto draw = [&random] { return static_cast<float>(random.Uniform(-1, 1)); };
        ASSERT_EQ(master.Give({draw(), draw(), draw()}), absl::OkStatus());
      }
      EXPECT_EQ(state.size(), master.step().state_size());
      Master restarted(config, Tiny(), {1, 2, 3});
      ASSERT_EQ(restarted.step().Restore(weights, state), absl::OkStatus());
      for (int64_t version = 8; version < 11; ++version) {
        const auto repeated =
            restarted.step().Repeat(version, weights, master.aggregates[version], master.sent[version]);
        ASSERT_EQ(repeated.status(), absl::OkStatus());
        ASSERT_EQ(restarted.step().Apply(master.sent[version], absl::MakeSpan(weights)), absl::OkStatus());
        EXPECT_EQ(*repeated, weights);
      }
      EXPECT_EQ(weights, master.weights());
      EXPECT_EQ(restarted.step().Repeat(8, weights, master.aggregates[4], master.sent[8]).status().code(),
                absl::StatusCode::kDataLoss);
    }
  }
}

TEST(SvrgStep, AStateThatDoesNotFitIsDamage) {
  Master master(Svrg(3, "acc_svrg"), Tiny(), {1, 2, 3});
  EXPECT_TRUE(absl::IsDataLoss(master.step().Restore(std::vector<float>(2), {})));
  EXPECT_TRUE(absl::IsDataLoss(master.step().Restore(std::vector<float>(3), std::vector<float>(4))));
  EXPECT_EQ(master.step().Restore(std::vector<float>(3), std::vector<float>(3)), absl::OkStatus());
}

TEST(SvrgStep, StepsThatGoTooFarAreRefusedAndChangeNothing) {
  Master master(Svrg(3), Tiny(), {1, 2, 3});
  ASSERT_EQ(master.Give({1, 1, 1}), absl::OkStatus());
  const absl::Status status = master.Give({0, 1e16f, 0});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("lower server.learning_rate"));
  ASSERT_EQ(master.Give({3, 3, 3}), absl::OkStatus());
  EXPECT_THAT(master.weights(), ElementsAre(0, 1, 2));
}

// Else every step of the epoch would be refused, and no new gradient asked for.
TEST(SvrgStep, AFullGradientThatGoesTooFarIsRefusedAndChangesNothing) {
  for (const char* optimizer : {"svrg", "acc_svrg"}) {
    Master master(Svrg(3, optimizer), Tiny(), {1, 2, 3});
    const absl::Status status = master.Give({0, 1e17f, 0});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << optimizer;
    EXPECT_THAT(status.message(), HasSubstr("lower server.learning_rate"));
    ASSERT_EQ(master.Give({1, 1, 1}), absl::OkStatus());
    ASSERT_EQ(master.Give({0, 0, 0}), absl::OkStatus());
    EXPECT_LT(master.weights()[1], 2);
  }
}

TEST(SvrgStep, RefusesSettingsThatAreNoEpochs) {
  RunConfig config = Svrg(3, "sgd");
  const auto codec = *MakeUpdateCodec(config, Tiny());
  EXPECT_TRUE(absl::IsInvalidArgument(ServerStep::Make(config, *codec).status()));
  config.server.name = "svrg";
  for (const DownstreamMode mode : {DownstreamMode::kForward, DownstreamMode::kAuto, DownstreamMode::kCoded}) {
    config.downstream = mode;
    EXPECT_TRUE(absl::IsInvalidArgument(ServerStep::Make(config, *codec).status()));
  }
}

// Condition (2): the fewest bits whose error is small against the distance from the snapshot.
TEST(SvrgStep, ChoosesTheFewestBitsThatAreEnough) {
  constexpr int64_t kMost = 9;
  const Layout layout = SyntheticLogistic::MakeLayout();
  for (const char* grouping : {"global", "per_tensor"}) {
    RunConfig config = Quantized(Svrg(40), kMost);
    config.downstream_codec.grouping = grouping;
    config.server.precision_loss = 0.05;
    Random random(9);
    std::vector<float> start;
    for (int64_t i = 0; i < layout.size(); ++i) start.push_back(static_cast<float>(random.Uniform(-1, 1)));
    Master master(config, layout, start);
    std::vector<float> x = start;
    ASSERT_EQ(master.Give(std::vector<float>(layout.size(), 0.0f)), absl::OkStatus());
    std::vector<int64_t> chosen;
    for (int t = 0; t < 39; ++t) {
      std::vector<float> gradient;
      for (float& value : x) {
        gradient.push_back(static_cast<float>(random.Uniform(-0.02, 0.02)) * static_cast<float>(t * t));
        value -= 0.25f * gradient.back();
      }
      ASSERT_EQ(master.Give(gradient), absl::OkStatus());
      const int64_t bits = kLowPrecisionFewestBits + ChoiceOf(absl::string_view(master.sent.back()).substr(1));
      double distance = 0;
      for (size_t i = 0; i < x.size(); ++i) distance += std::pow(static_cast<double>(x[i] - start[i]), 2);
      const auto loss = [&](int64_t b) {
        const absl::Span<const float> all = x;
        if (config.downstream_codec.grouping == "global") return LowPrecisionLoss(all, static_cast<int>(b));
        return LowPrecisionLoss(all.first(40), static_cast<int>(b)) +
               LowPrecisionLoss(all.last(1), static_cast<int>(b));
      };
      if (t == 0) {
        EXPECT_EQ(master.sent.back().size(), 1) << "a gradient of zero: still the snapshot";
        continue;
      }
      EXPECT_TRUE(bits == kMost || loss(bits) <= 0.05 * distance) << t;
      EXPECT_TRUE(bits == 2 || loss(bits - 1) > 0.05 * distance) << t;
      chosen.push_back(bits);
    }
    EXPECT_EQ(chosen.front(), kMost) << "close to the snapshot none are enough";
    EXPECT_LE(chosen.back(), 4);
  }
}

struct Method {
  const char* name;
  const char* optimizer;
  const char* up;  // codec of inner steps
  int64_t bits;    // of it
  int64_t down;    // bits of models; 0: float32
  double mu;       // of condition (2); 0: fixed bits
  bool centered;
};

void PrintTo(const Method& method, std::ostream* out) { *out << method.name; }

constexpr Method kMethods[] = {
    {"AsyFPG", "svrg", "dense", 4, 0, 0, false},
    {"AccAsyFPG", "acc_svrg", "dense", 4, 0, 0, false},
    {"QSVRG", "svrg", "low_precision", 8, 0, 0, false},
    {"HALP", "svrg", "dense", 4, 8, 0, true},
    {"AsyLPG", "svrg", "low_precision", 8, 8, 0, false},
    {"AsyLPGWithCondition2", "svrg", "low_precision", 8, 12, 0.1, false},
    {"SparseAsyLPG", "svrg", "low_precision_sparse", 8, 8, 0, false},
    {"AccAsyLPG", "acc_svrg", "low_precision", 8, 8, 0, false},
    {"SparseAccAsyLPG", "acc_svrg", "low_precision_sparse", 8, 8, 0, false},
};

RunConfig ConfigOf(const Method& method, int64_t epoch_length) {
  RunConfig config = Svrg(epoch_length, method.optimizer);
  config.codec.name = method.up;
  config.codec.bits = method.bits;
  config.codec.density = 1;
  config.codec.grouping = "global";
  config.server.learning_rate = config.server.name == "svrg" ? 0.4 : 0.1;
  config.train.optimizer.l1 = 1e-3;
  if (method.down > 0) config = Quantized(config, method.down);
  config.server.precision_loss = method.mu;
  config.server.bit_centering = method.centered;
  return config;
}

class SvrgMethods : public ::testing::TestWithParam<Method> {};

// Four workers with a quarter of the examples each, whose gradients are three versions old.
TEST_P(SvrgMethods, ConvergesToTheOptimum) {
  constexpr int64_t kLength = 100, kEpochs = 12, kDelay = 3, kWorkers = 4, kParts = 40;
  const SyntheticLogistic problem;
  const Layout layout = SyntheticLogistic::MakeLayout();
  const RunConfig config = ConfigOf(GetParam(), kLength);
  Master master(config, layout, std::vector<float>(layout.size(), 0.0f));
  Random random(21);
  const double start = problem.Objective(master.weights(), 1e-3);
  std::vector<std::vector<float>> held;  // the epoch's models
  for (int64_t version = 0; version < kEpochs * (kLength + 1); ++version) {
    std::vector<double> gradient(layout.size(), 0.0);
    if (StandsAlone(config, version)) {
      held = {master.weights()};
      problem.AddGradient(master.weights(), 0, 1, 1, &gradient);
    } else {
      const auto worker = static_cast<int64_t>(random.Below(kWorkers)),
                 part = static_cast<int64_t>(random.Below(kParts / kWorkers));
      const std::vector<float>& seen = held[std::max<int64_t>(1, static_cast<int64_t>(held.size()) - 1 - kDelay)];
      problem.AddGradient(seen, worker + kWorkers * part, kParts, 1, &gradient);
      problem.AddGradient(held[0], worker + kWorkers * part, kParts, -1, &gradient);
    }
    ASSERT_EQ(master.Give({gradient.begin(), gradient.end()}), absl::OkStatus());
    held.push_back(master.weights());
  }
  // The optimum, by many full steps.
  Master exact(ConfigOf(kMethods[0], 1), layout, std::vector<float>(layout.size(), 0.0f));
  for (int64_t version = 0; version < 6000; ++version) {
    std::vector<double> gradient(layout.size(), 0.0);
    if (version % 2 == 0) problem.AddGradient(exact.weights(), 0, 1, 1, &gradient);
    ASSERT_EQ(exact.Give({gradient.begin(), gradient.end()}), absl::OkStatus());
  }
  const double best = problem.Objective(exact.weights(), 1e-3);
  EXPECT_LT(best, start - 0.05);
  EXPECT_LT(problem.Objective(master.weights(), 1e-3), best + 1e-3 * (start - best));
}

INSTANTIATE_TEST_SUITE_P(Paper, SvrgMethods, ::testing::ValuesIn(kMethods),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace terse
