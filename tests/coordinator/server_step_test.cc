#include "coordinator/server_step.h"

#include "absl/strings/str_cat.h"
#include "compression/aggregate.h"
#include "compression/codec_table.h"
#include "compression/run_codecs.h"
#include "coordinator/server_optimizer/server_optimizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/grid_trainer.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kClients = 4;

RunConfig StepConfig(DownstreamMode mode, const std::string& optimizer, const std::string& coded = "sbc") {
  RunConfig config;
  config.seed = 11;
  config.codec.name = "sbc";
  config.codec.density = 0.02;
  config.codec.mean_precision = "bf16";
  config.downstream = mode;
  config.downstream_codec.name = coded;
  config.downstream_codec.density = 0.05;
  config.downstream_codec.feedback = "error_feedback";
  config.server.name = optimizer;
  return config;
}

// A server with its model, and grid clients without residuals.
class Server {
 public:
  explicit Server(const RunConfig& config)
      : codec_(*MakeCodec(config.codec, GridLayout())),
        coded_(*MakeDownstreamCodec(config, GridLayout())),
        step_(*ServerStep::Make(config, codecs())),
        weights_(GridInitialWeights()) {}

  DownstreamCodecs codecs() const { return {*codec_, coded_.get()}; }
  ServerStep& step() { return *step_; }
  const Codec& codec() const { return *codec_; }
  const std::vector<float>& weights() const { return weights_; }

  std::vector<std::string> Messages(int64_t round) const {
    std::vector<std::string> messages;
    for (int64_t client = 0; client < kClients; ++client) {
      messages.push_back(*codec_->Encode(GridDelta(client, round)));
    }
    return messages;
  }

  // Those of clients that mostly learn the same.
  std::vector<std::string> AgreeingMessages(int64_t round) const {
    std::vector<std::string> messages;
    for (int64_t client = 0; client < kClients; ++client) {
      std::vector<float> delta = GridDelta(0, round);
      const std::vector<float> own = GridDelta(1 + client, round);
      for (size_t i = 0; i < delta.size(); ++i) delta[i] += own[i] / 4;
      messages.push_back(*codec_->Encode(delta));
    }
    return messages;
  }

  // One round; what was sent and what it is repeated from are appended.
  void Round(int64_t round) { Round(round, Messages(round)); }
  void Round(int64_t round, const std::vector<std::string>& messages) {
    const std::vector<absl::string_view> views(messages.begin(), messages.end());
    absl::StatusOr<ServerStep::Result> made = step_->MakeStep(round, weights_, views, {}, 0, 0);
    ASSERT_EQ(made.status(), absl::OkStatus());
    ASSERT_EQ(step_->Apply(made->downstream, absl::MakeSpan(weights_)), absl::OkStatus());
    ASSERT_EQ(HashWeights(made->weights), HashWeights(weights_)) << "what clients make of the message";
    aggregates.push_back(step_->RoundMessages(views, {}));
    sent.push_back(std::move(made->downstream));
  }

  std::vector<std::string> sent;
  std::vector<std::string> aggregates;

 private:
  const std::unique_ptr<const Codec> codec_;
  const std::unique_ptr<const Codec> coded_;
  const std::unique_ptr<ServerStep> step_;
  std::vector<float> weights_;
};

// All pairs of an optimizer and a way to send its steps; some of them where the sanitizer takes twenty times as long to
// look at what one thread does alone.
std::vector<RunConfig> Stateful() {
#ifdef __SANITIZE_THREAD__
  return {StepConfig(DownstreamMode::kCoded, "average", "sbc"), StepConfig(DownstreamMode::kCoded, "adam", "qsgd"),
          StepConfig(DownstreamMode::kAuto, "sgd")};
#endif
  std::vector<RunConfig> configs;
  for (const char* optimizer : {"average", "sgd", "adam", "yogi", "adagrad"}) {
    for (const char* coded : {"sbc", "stc", "qsgd", "fp16", "mcgq"}) {
      configs.push_back(StepConfig(DownstreamMode::kCoded, optimizer, coded));
    }
    if (configs.back().server.name != "average") configs.push_back(StepConfig(DownstreamMode::kDense, optimizer));
    if (configs.back().server.name != "average") configs.push_back(StepConfig(DownstreamMode::kAuto, optimizer));
  }
  return configs;
}

std::string NameOf(const RunConfig& config) {
  return absl::StrCat(config.server.name, " ",
                      config.downstream == DownstreamMode::kCoded  ? config.downstream_codec.name
                      : config.downstream == DownstreamMode::kAuto ? "auto"
                                                                   : "dense");
}

TEST(ServerStep, ModelAndResidualTogetherMoveByTheAverages) {
  Server server(StepConfig(DownstreamMode::kCoded, "average"));
  // Multiples of a quarter of the grid's: all sums are exact in double.
  const std::vector<float> initial = GridInitialWeights();
  std::vector<double> expected(initial.begin(), initial.end());
  for (int64_t round = 0; round < 40; ++round) {
    const std::vector<std::string> messages = server.Messages(round);
    std::vector<float> average(expected.size());
    const std::vector<absl::string_view> views(messages.begin(), messages.end());
    ASSERT_EQ(AverageUpdates(server.codec(), views, {}, 1, absl::MakeSpan(average)), absl::OkStatus());
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += average[i];
    server.Round(round);
    EXPECT_LT(server.sent.back().size(), server.aggregates.back().size()) << "one message instead of four";
  }
  const std::vector<float> residual = server.step().state().Copy();
  ASSERT_EQ(residual.size(), expected.size());
  double most = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(server.weights()[i] + static_cast<double>(residual[i]), expected[i], 1e-5) << i;
    most = std::max<double>(most, std::abs(residual[i]));
  }
  EXPECT_GT(most, 0.01) << "nothing was held back, so nothing was tested";
}

TEST(ServerStep, RepeatsItsRoundsFromAnyCheckpoint) {
  constexpr int64_t kRounds = 9, kCheckpoint = 4;
  for (const RunConfig& config : Stateful()) {
    Server server(config);
    ASSERT_TRUE(server.step().has_state()) << NameOf(config);
    std::vector<float> state, weights;
    for (int64_t round = 0; round < kRounds; ++round) {
      if (round == kCheckpoint) state = server.step().state().Copy(), weights = server.weights();
      server.Round(round);
    }
    ASSERT_EQ(state.size(), server.step().state_size()) << NameOf(config);
    Server restarted(config);
    ASSERT_EQ(restarted.step().Restore({}, state), absl::OkStatus());
    for (int64_t round = kCheckpoint; round < kRounds; ++round) {
      const auto repeated = restarted.step().Repeat(round, weights, server.aggregates[round], server.sent[round]);
      ASSERT_EQ(repeated.status(), absl::OkStatus()) << NameOf(config) << " " << round;
      weights = *repeated;
    }
    EXPECT_EQ(weights, server.weights()) << NameOf(config);
    EXPECT_EQ(restarted.step().state().Copy(), server.step().state().Copy()) << NameOf(config);
    if (NameOf(config) == "average fp16") continue;  // holds nothing back: the grid's values have few bits
    // Without the checkpoint's state the rounds after it come out differently, and that is noticed.
    EXPECT_EQ(Server(config)
                  .step()
                  .Repeat(kCheckpoint, GridInitialWeights(), server.aggregates[kCheckpoint], server.sent[kCheckpoint])
                  .status()
                  .code(),
              absl::StatusCode::kDataLoss)
        << NameOf(config);
  }
}

// Clients make the step of what was forwarded: Round compares.
TEST(ServerStep, ForwardsUpdatesWhoseSilenceIsFilledIn) {
  RunConfig config = StepConfig(DownstreamMode::kForward, "average");
  config.aggregation.rule = "imputed_mean";
  Server server(config);
  for (int64_t round = 0; round < 5; ++round) {
    const std::vector<std::string> messages = server.AgreeingMessages(round);
    server.Round(round, messages);
    const auto forwarded = ParseForwarded(server.sent.back());
    ASSERT_EQ(forwarded.status(), absl::OkStatus()) << round;
    EXPECT_EQ(forwarded->updates, std::vector<absl::string_view>(messages.begin(), messages.end()));
    EXPECT_GT(forwarded->trust, 0.1f) << round;
  }
}

// A release that knew fewer forms logged a step as float32 that is sent as a sparse step today.
TEST(ServerStep, RepeatsWhatAnEarlierReleaseSentInAnotherForm) {
  const RunConfig config = StepConfig(DownstreamMode::kAuto, "sgd");
  Server server(config);
  server.Round(0);
  ASSERT_EQ(server.sent[0][0], '\x89');
  const std::vector<float> initial = GridInitialWeights();
  std::vector<float> step, scratch = initial;
  ASSERT_EQ(ApplyDownstream(server.codec(), server.sent[0], &step, absl::MakeSpan(scratch)), absl::OkStatus());
  Server again(config), other(config);
  const auto repeated = again.step().Repeat(0, initial, server.aggregates[0], BuildDenseDownstream(step));
  ASSERT_EQ(repeated.status(), absl::OkStatus());
  EXPECT_EQ(*repeated, server.weights());
  EXPECT_EQ(again.step().state().Copy(), server.step().state().Copy());
  step[0] += 1;
  EXPECT_EQ(other.step().Repeat(0, initial, server.aggregates[0], BuildDenseDownstream(step)).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(ServerStep, PlainAveragesLeaveNothingBehind) {
  for (const DownstreamMode mode : {DownstreamMode::kForward, DownstreamMode::kDense, DownstreamMode::kAuto}) {
    Server server(StepConfig(mode, "average"));
    EXPECT_FALSE(server.step().has_state());
    server.Round(0);
    EXPECT_THAT(server.step().state().Copy(), IsEmpty());
    EXPECT_THAT(server.aggregates, Each(IsEmpty()));
  }
}

// As on clients, where their own feedback is none: a residual would be amplified from round to round.
TEST(ServerStep, CodecsThatAreRightOnAverageKeepNoResidual) {
  for (const char* name : {"qsgd", "terngrad", "low_precision", "low_precision_sparse"}) {
    RunConfig config = StepConfig(DownstreamMode::kCoded, "average", name);
    config.downstream_codec.feedback = "own";
    Server server(config);
    server.Round(0);
    EXPECT_FALSE(server.step().has_state()) << name;
    EXPECT_TRUE(server.aggregates.back().empty()) << name;
    config.server.name = "sgd";
    Server with_momentum(config);
    EXPECT_EQ(with_momentum.step().state_size(), GridLayout().size()) << name;
    with_momentum.Round(0);
    Server restarted(config);
    ASSERT_EQ(restarted.step().Restore({}, with_momentum.step().state().Copy()), absl::OkStatus()) << name;
    EXPECT_EQ(restarted.step().state().Copy(), with_momentum.step().state().Copy()) << name;
  }
  RunConfig sparse = StepConfig(DownstreamMode::kCoded, "average", "sbc");
  sparse.downstream_codec.feedback = "own";
  EXPECT_TRUE(Server(sparse).step().has_state());
}

TEST(ServerStep, BufferedRoundsRefuseModelsWithAveragedBuffers) {
  RunConfig config = StepConfig(DownstreamMode::kForward, "average");
  config.rounds.buffered = true;
  const auto codec =
      *MakeCodec(config.codec, *Layout::Create({{"weight", {6}}, {"running", {2}, TensorKind::kBuffer}}));
  const absl::Status status = ServerStep::Make(config, *codec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("model.buffers = 'local'"));
}

TEST(ServerStep, BuffersMoveByTheirAverageAndLeaveNoResidual) {
  RunConfig config = StepConfig(DownstreamMode::kCoded, "adam");
  config.codec.name = "dense";
  const Layout layout = *Layout::Create({{"weight", {6}}, {"running", {2}, TensorKind::kBuffer}});
  const auto codec = *MakeCodec(config.codec, layout);
  const auto coded = *MakeDownstreamCodec(config, layout);
  const auto step = *ServerStep::Make(config, {*codec, coded.get()});
  std::vector<float> weights(8, 0.0f);
  for (int64_t round = 0; round < 3; ++round) {
    const std::string message = *codec->Encode(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
    const auto made = step->MakeStep(round, weights, {absl::string_view(message)}, {}, 0, 0);
    ASSERT_EQ(made.status(), absl::OkStatus());
    ASSERT_EQ(step->Apply(made->downstream, absl::MakeSpan(weights)), absl::OkStatus());
    ASSERT_EQ(made->weights, weights);
  }
  EXPECT_EQ(weights[6], 21);
  EXPECT_EQ(weights[7], 24);
  const std::vector<float> state = step->state().Copy();
  ASSERT_EQ(state.size(), 6 + 6 + 8);
  EXPECT_EQ(state[18], 0);
  EXPECT_EQ(state[19], 0);
}

TEST(ServerStep, AbsurdWeightsAreRefusedAndChangeNothing) {
  RunConfig config = StepConfig(DownstreamMode::kDense, "sgd");
  config.codec.name = "dense";
  Server server(config);
  server.Round(0);
  const std::vector<float> before = server.step().state().Copy();
  std::vector<float> weights = server.weights();
  std::vector<float> update(GridLayout().size(), 0.0f);
  weights[3] = update[3] = kMostAverage;  // the most that is not refused before
  const std::string message = *server.codec().Encode(update);
  const absl::Status status = server.step().MakeStep(1, weights, {absl::string_view(message)}, {}, 0, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("too far to go on with"));
  EXPECT_EQ(server.step().state().Copy(), before);
}

// For every optimizer and every way to send a step: after a step that was refused the next round is the one that would
// have come without it.
TEST(ServerStep, AStepThatIsRefusedLeavesNoTrace) {
  for (RunConfig config : Stateful()) {
    for (const char* feedback : {"error_feedback", "momentum_correction"}) {
      config.downstream_codec.feedback = feedback;
      Server server(config), other(config);
      for (int64_t round = 0; round < 3; ++round) server.Round(round), other.Round(round);
      const std::vector<float> before = server.step().state().Copy();
      // Weights that no step can take further, whatever it is.
      const std::vector<float> weights(GridLayout().size(), 2 * kMostWeight);
      const std::vector<std::string> messages = server.Messages(7);
      const std::vector<absl::string_view> views(messages.begin(), messages.end());
      ASSERT_EQ(server.step().MakeStep(3, weights, views, {}, 0, 0).status().code(), absl::StatusCode::kInvalidArgument)
          << NameOf(config);
      EXPECT_EQ(server.step().state().Copy(), before) << NameOf(config) << " " << feedback;
      server.Round(3), other.Round(3);
      EXPECT_EQ(server.sent, other.sent) << NameOf(config) << " " << feedback;
      EXPECT_EQ(server.weights(), other.weights()) << NameOf(config) << " " << feedback;
    }
  }
}

// Also where the server is gone, as at the end of a run whose last checkpoint is still being written.
TEST(ServerStep, AHeldStateStaysAsItIs) {
  for (RunConfig config : Stateful()) {
    for (const char* feedback : {"error_feedback", "momentum_correction"}) {
      config.downstream_codec.feedback = feedback;
      auto server = std::make_unique<Server>(config);
      Server other(config);
      std::vector<HeldState> held;
      std::vector<std::vector<float>> expected;
      for (int64_t round = 0; round < 6; ++round) {
        if (round == 2 || round == 3) held.push_back(server->step().state());
        if (round == 2 || round == 3) expected.push_back(server->step().state().Copy());
        server->Round(round), other.Round(round);
      }
      EXPECT_EQ(server->sent, other.sent) << NameOf(config) << " " << feedback << ": holding changes no round";
      held.push_back(server->step().state());
      expected.push_back(server->step().state().Copy());
      server.reset();
      for (size_t i = 0; i < held.size(); ++i) {
        ASSERT_EQ(expected[i].size(), other.step().state_size());
        EXPECT_EQ(held[i].Copy(), expected[i]) << NameOf(config) << " " << feedback << " " << i;
      }
    }
  }
}

TEST(ServerStep, AStateOfAnotherSizeIsDamage) {
  Server server(StepConfig(DownstreamMode::kCoded, "adam"));
  std::vector<float> state(server.step().state_size() + 1, 0.0f);
  EXPECT_EQ(server.step().Restore({}, state).code(), absl::StatusCode::kDataLoss);
}

TEST(ServerStep, ForwardCannotTellAnOptimizersStep) {
  const auto codec = *MakeCodec(StepConfig(DownstreamMode::kForward, "adam").codec, GridLayout());
  EXPECT_EQ(ServerStep::Make(StepConfig(DownstreamMode::kForward, "adam"), *codec).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace terse
