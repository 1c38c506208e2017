// Sessions that rest between messages and share their weights say what other sessions say, byte for byte.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/session.h"
#include "client/shared_models.h"
#include "compression/adaptive_decay.h"
#include "compression/aggregate.h"
#include "compression/downstream.h"
#include "compression/run_codecs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/run_store.h"
#include "tests/client/scripted_coordinator.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/fleet_simulation.h"
#include "tests/testing/grid_trainer.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

// A session, the state that it keeps, and the coordinator's end of its connection.
struct Client {
  TempDirectory directory;
  std::unique_ptr<ClientState> state = *ClientState::Open(directory.path());
  std::unique_ptr<ClientSession> session;
  ScriptedCoordinator link;
  int trainers = 0;  // made so far
  std::string log;
};

// The state of a session that is more than its residual.
enum class Keeps { kNothing, kHistory, kObservations };

// Training that takes a fifth of the weights back.
class FadingTrainer : public GridTrainer {
 public:
  using GridTrainer::GridTrainer;
  absl::StatusOr<TrainResult> Train(absl::Span<const float> weights, const LocalPlan& plan,
                                    const std::function<bool()>& keep_going, absl::Span<float> delta) override {
    absl::StatusOr<TrainResult> result = GridTrainer::Train(weights, plan, keep_going, delta);
    for (size_t i = 0; i < delta.size(); ++i) delta[i] -= 0.2f * weights[i];
    return result;
  }
};

class RestingSession : public ::testing::TestWithParam<Keeps> {
 protected:
  RestingSession() {
    RunConfig config = GridRunConfig(2, 10);
    if (is_packed()) config.codec.positions = std::string(kSharedPositions);
    if (GetParam() == Keeps::kObservations) config.codec.feedback = "adaptive_decay";
    config_ = std::make_shared<const RunConfig>(config);
    codec_ = *MakeUpdateCodec(config, GridLayout());
    weights_ = GridInitialWeights();
    for (Client* client : {&awake_, &resting_, &sharing_}) Make(client);
  }

  void Make(Client* client) {
    ClientSession::Options options;
    options.name = "a";
    options.process = {5, 1};
    options.state = client->state.get();
    options.make_trainer = [client](const RunConfig&, const Shard& shard,
                                    absl::string_view) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
      ++client->trainers;
      return std::make_unique<FadingTrainer>(shard.index, GridLayout(), /*starts=*/true);
    };
    options.clock = &clock_;
    options.keep_going = [] { return true; };
    options.log = [client](LogLevel, const LogFields&, const std::string& line) { client->log += line + "\n"; };
    if (client != &awake_) options.shared_models = &models_;
    client->session = std::make_unique<ClientSession>(std::move(options));
    ASSERT_EQ(client->session->Start(&client->link), absl::OkStatus());
  }

  void Say(const FromServer& message) {
    for (Client* client : {&awake_, &resting_, &sharing_}) {
      const absl::optional<absl::Status> end = client->session->Take(&client->link, message);
      ASSERT_FALSE(end.has_value()) << *end << "\n" << client->log;
      if (client != &awake_) client->session->Rest();
    }
  }
  // The newest update of each client, which is the same.
  Update NewestUpdate() const {
    const std::vector<Update> updates = awake_.link.Said<Update>();
    if (updates.empty()) ADD_FAILURE() << "no update: " << awake_.log;
    if (updates.empty()) return Update();
    for (const Client* client : {&resting_, &sharing_}) {
      const std::vector<Update> theirs = client->link.Said<Update>();
      EXPECT_EQ(theirs.size(), updates.size()) << client->log;
      if (theirs.empty()) continue;
      EXPECT_EQ(theirs.back().message, updates.back().message);
      EXPECT_EQ(theirs.back().update_id, updates.back().update_id);
      EXPECT_EQ(theirs.back().norm_code, updates.back().norm_code);
      EXPECT_EQ(theirs.back().packed, updates.back().packed);
    }
    return updates.back();
  }
  bool is_packed() const { return GetParam() == Keeps::kHistory; }

  // One round, whose update is applied or not; it and that of a client that is not here move the model.
  void Round(int64_t round, bool applied) {
    Say(Assignment{round, version_, config_->train.local_steps, 0, absl::nullopt, is_packed()});
    const Update update = NewestUpdate();
    Say(Verdict{applied ? Outcome::kApplied : Outcome::kNotApplied, update.update_id, update.update_id, ""});
    Move(update.message, *codec_->Encode(GridDelta(7, round)));
  }
  void Move(const std::string& update, const std::string& other) {
    std::vector<float> average(weights_.size());
    ASSERT_EQ(AverageUpdates(*codec_, {update, other}, {}, 1, absl::MakeSpan(average)), absl::OkStatus());
    auto message =
        std::make_shared<const std::string>(BuildDownstream(DownstreamMode::kForward, {update, other}, {}, average));
    std::vector<float> scratch;
    ASSERT_EQ(ApplyDownstream(*codec_, *message, &scratch, absl::MakeSpan(weights_)), absl::OkStatus());
    Say(Downstream{++version_, HashWeights(weights_), message});
  }

  FakeClock clock_;
  SharedModels models_;
  std::shared_ptr<const RunConfig> config_;
  std::unique_ptr<const Codec> codec_;
  std::vector<float> weights_;  // the coordinator's
  int64_t version_ = 0;
  Client awake_, resting_, sharing_;
};

TEST_P(RestingSession, SaysWhatAnotherSays) {
  Welcome welcome{HashBytes("run"), config_, 1, absl::nullopt, 0};
  welcome.start_hash = HashWeights(weights_);
  Say(welcome);
  EXPECT_EQ(resting_.link.Said<Ready>().back().model_hash, HashWeights(weights_)) << resting_.log;
  int64_t round = 0;
  for (const bool applied : {true, false, false, true, true}) Round(++round, applied);
  // A verdict that takes everything back is heard at rest, too.
  Say(Assignment{++round, version_, config_->train.local_steps, 0, absl::nullopt, false});
  Say(Verdict{Outcome::kReset, NewestUpdate().update_id, Id128{}, "a reason"});
  Round(++round, true);
  EXPECT_EQ(awake_.trainers, 1);
  EXPECT_GT(resting_.trainers, 6) << "it never rested";
}

class ObservingSession : public RestingSession {};

TEST_P(ObservingSession, TellsItsFeedbackWhatIsTrained) {
  Welcome welcome{HashBytes("run"), config_, 1, absl::nullopt, 0};
  welcome.start_hash = HashWeights(weights_);
  Say(welcome);
  FadingTrainer trainer(1);
  AdaptiveDecay expected(codec_.get());
  for (int64_t round = 1; round <= 6; ++round) {
    std::vector<float> delta(weights_.size());
    ASSERT_TRUE(trainer
                    .Train(
                        weights_, {}, [] { return true; }, absl::MakeSpan(delta))
                    .ok());
    expected.Observe(weights_, delta);
    const std::string message = *expected.Compress(&delta, {config_->seed, static_cast<uint64_t>(round), 1});
    ASSERT_TRUE(expected.Settle(/*applied=*/true).ok());
    Round(round, /*applied=*/true);
    EXPECT_EQ(NewestUpdate().message, message) << round;
  }
  EXPECT_GT(expected.repeated(), 0.01) << "so that the residual fades";
}

TEST_P(RestingSession, WeightsAreHeldOnce) {
  Welcome welcome{HashBytes("run"), config_, 1, absl::nullopt, 0};
  welcome.start_hash = HashWeights(weights_);
  Say(welcome);
  Round(1, true);
  const SharedModels::Weights shared = models_.Find(HashWeights(weights_));
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(shared.use_count(), 3) << "two sessions, and this test";
  EXPECT_EQ(*shared, weights_);
  EXPECT_EQ(models_.Find(HashWeights(GridInitialWeights())), nullptr) << "nobody holds version 0 any more";
}

TEST_P(RestingSession, AnotherHashIsFoundOut) {
  Welcome welcome{HashBytes("run"), config_, 1, absl::nullopt, 0};
  welcome.start_hash = HashWeights(weights_);
  Say(welcome);
  Say(Assignment{1, 0, config_->train.local_steps, 0, absl::nullopt, false});
  const std::string update = NewestUpdate().message;
  auto message = std::make_shared<const std::string>(
      BuildDownstream(DownstreamMode::kForward, {update}, {}, std::vector<float>(weights_.size())));
  Say(Downstream{1, HashBytes("another"), message});
  EXPECT_THAT(resting_.log, ::testing::HasSubstr("does not match the coordinator's model hash"));
  EXPECT_EQ(resting_.link.Said<Ready>().back().version, absl::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Observations, ObservingSession, ::testing::Values(Keeps::kObservations));
INSTANTIATE_TEST_SUITE_P(Keeping, RestingSession,
                         ::testing::Values(Keeps::kNothing, Keeps::kHistory, Keeps::kObservations),
                         [](const auto& info) {
                           return info.param == Keeps::kNothing   ? "nothing"
                                  : info.param == Keeps::kHistory ? "history"
                                                                  : "observations";
                         });

}  // namespace
}  // namespace terse
