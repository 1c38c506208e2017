// A client that was away for 200 rounds comes back: by the log where that costs fewer bytes than a checkpoint,
// otherwise by the checkpoint, and holds the same weights as everyone.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fleet_simulation.h"

namespace terse {
namespace {

constexpr int64_t kAway = 200;

// One client works in each round; the checkpoints are those of a long run. `density` decides what a round costs.
RunConfig CatchUpConfig(double density, const std::string& grouping) {
  RunConfig config = GridRunConfig(2, 1000);
  config.codec.density = density;
  config.codec.grouping = grouping;
  config.rounds.selection = Selection::kRandom;
  config.rounds.cohort = config.rounds.quorum = config.rounds.invited = 1;
  config.checkpoint_every = 50;
  config.checkpoint_keep = 2;
  return config;
}

struct Return {
  int64_t deltas = 0, resyncs = 0;
  int64_t bytes = 0;  // of messages and of the checkpoint
};

int64_t ResyncsOf(const FleetSimulation& fleet, int64_t i) {
  int64_t resyncs = 0;
  for (const FromServer& message : fleet.heard(i)) resyncs += std::holds_alternative<Resync>(message);
  return resyncs;
}

// Nobody downloads the model that a run starts from; who comes late gets the log from there while it is cheaper.
TEST(CatchUp, ClientsThatMakeVersionZeroDownloadNothing) {
  for (const bool makes : {true, false}) {
    RunConfig config = GridRunConfig(3, 6);
    config.rounds.quorum = 2;
    FleetSimulation fleet(config, 3);
    fleet.set_clients_start(makes);
    ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
    for (int64_t i = 0; i < 2; ++i) {
      ASSERT_EQ(fleet.StartClient(i), absl::OkStatus());
      fleet.Connect(i);
    }
    ASSERT_EQ(fleet.Settle(), absl::OkStatus());
    ASSERT_EQ(fleet.PassDeadline(), absl::OkStatus());
    ASSERT_EQ(fleet.Handle(PauseRequested{"once this round is over"}), absl::OkStatus());
    ASSERT_EQ(fleet.Settle(), absl::OkStatus());
    ASSERT_EQ(fleet.engine()->View().head.version, 1);
    ASSERT_EQ(fleet.StartClient(2), absl::OkStatus());
    fleet.Connect(2);
    ASSERT_EQ(fleet.Settle(), absl::OkStatus());
    ASSERT_EQ(fleet.Handle(ResumeRequested{}), absl::OkStatus());
    ASSERT_EQ(fleet.Settle(), absl::OkStatus());
    ASSERT_EQ(fleet.engine()->View().head.version, 6);
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(ResyncsOf(fleet, i), makes ? 0 : 1) << i;
      EXPECT_EQ(fleet.last_result(i), absl::OkStatus());
    }
    EXPECT_EQ(CheckReplay(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
              absl::OkStatus());
  }
}

// A message that is too large to be sent goes to nobody: a session would be cut for it, on its return be sent it again,
// and so on for ever. All of them load the checkpoint of each round instead, and the run goes on.
TEST(CatchUp, AMessageThatIsTooLargeIsReplacedByACheckpoint) {
  for (const bool buffered : {false, true}) {
    RunConfig config = GridRunConfig(3, 6);
    config.checkpoint_every = 1000;
    config.rounds.buffered = buffered;
    config.rounds.staleness = 10;
    FleetSimulation fleet(config, 3);
    fleet.set_clients_start(true);
    fleet.set_most_log_bytes(20);
    ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
    ASSERT_EQ(fleet.Settle(), absl::OkStatus());
    EXPECT_EQ(fleet.engine()->View().head.version, 6) << "it goes on without any timer";
    for (int64_t i = 0; i < 3; ++i) {
      for (const FromServer& message : fleet.heard(i)) EXPECT_FALSE(std::holds_alternative<Downstream>(message)) << i;
      EXPECT_GE(ResyncsOf(fleet, i), 5) << i;
      EXPECT_EQ(fleet.last_result(i), absl::OkStatus());
    }
    EXPECT_EQ(CheckReplay(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
              absl::OkStatus());
  }
}

// One that comes late lacks more than may be sent, though each message of it is small.
TEST(CatchUp, WhoLacksTooMuchWaitsForANewerCheckpoint) {
  RunConfig config = GridRunConfig(3, 40);
  config.rounds.quorum = 2;
  config.checkpoint_every = 1000;
  FleetSimulation fleet(config, 3);
  fleet.set_clients_start(true);
  ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  for (int64_t i = 0; i < 2; ++i) {
    ASSERT_EQ(fleet.StartClient(i), absl::OkStatus());
    fleet.Connect(i);
  }
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  ASSERT_EQ(fleet.PassDeadline(), absl::OkStatus());
  for (int k = 0; k < 5; ++k) {
    ASSERT_EQ(fleet.Handle(PauseRequested{"once this round is over"}), absl::OkStatus());
    ASSERT_EQ(fleet.Settle(), absl::OkStatus());
    if (k < 4) {
      ASSERT_EQ(fleet.Handle(ResumeRequested{}), absl::OkStatus());
    }
  }
  const int64_t version = fleet.engine()->View().head.version;
  ASSERT_EQ(version, 5);
  const int64_t log_bytes = *fleet.store()->LogBytes(0);
  for (int64_t i = 0; i < 2; ++i) ASSERT_EQ(fleet.StopClient(i), absl::OkStatus());
  fleet.KillCoordinator();
  fleet.set_most_log_bytes(log_bytes - 1);
  ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  ASSERT_EQ((*fleet.store()->NewestCheckpointFile()).version, 0);
  ASSERT_EQ(fleet.StartClient(2), absl::OkStatus());
  fleet.Connect(2);
  fleet.hold_background(true);
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  EXPECT_EQ(ResyncsOf(fleet, 2), 0) << "the checkpoint that it needs is being written";
  fleet.hold_background(false);
  ASSERT_EQ(fleet.Handle(Tick{}), absl::OkStatus());
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  EXPECT_EQ(ResyncsOf(fleet, 2), 1);
  EXPECT_EQ((*fleet.store()->NewestCheckpointFile()).version, version);
}

class Away {
 public:
  explicit Away(const RunConfig& config) : fleet_(config, 2) {
    EXPECT_EQ(fleet_.StartAll(), absl::OkStatus());
    RunTo(4);
    EXPECT_EQ(fleet_.StopClient(1), absl::OkStatus());  // it keeps its model
    RunTo(fleet_.engine()->View().head.version + kAway);
  }

  Return ComeBack() {
    const size_t heard = fleet_.heard(1).size();
    EXPECT_EQ(fleet_.StartClient(1), absl::OkStatus());
    fleet_.Connect(1);
    // Only client 1's messages move: check-in, welcome, ready, and all that brings it to the head.
    while (*fleet_.DeliverUp(1) || *fleet_.DeliverDown(1)) {
    }
    Return result;
    for (size_t k = heard; k < fleet_.heard(1).size(); ++k) {
      const FromServer& message = fleet_.heard(1)[k];
      const auto* delta = std::get_if<Downstream>(&message);
      result.deltas += delta != nullptr;
      result.bytes += delta != nullptr ? delta->message->size() : 0;
      if (!std::holds_alternative<Resync>(message)) continue;
      ++result.resyncs;
      result.bytes += fleet_.checkpoint_bytes();
    }
    return result;
  }
  // The weights that the client holds, hashed after an orderly exit.
  Id128 HashOfClient() {
    EXPECT_EQ(fleet_.StopClient(1), absl::OkStatus());
    EXPECT_EQ(fleet_.StartClient(1), absl::OkStatus());
    const absl::optional<CachedModel> model = fleet_.state(1)->LoadModel();
    EXPECT_TRUE(model.has_value());
    EXPECT_EQ(model->version, fleet_.engine()->View().head.version);
    return HashWeights(model->weights);
  }

  FleetSimulation& fleet() { return fleet_; }

 private:
  void RunTo(int64_t version) {
    for (int64_t step = 0; fleet_.engine()->View().head.version < version; ++step) {
      ASSERT_LT(step, 100'000);
      ASSERT_TRUE(*fleet_.DeliverAny(nullptr)) << "version " << fleet_.engine()->View().head.version;
    }
  }

  FleetSimulation fleet_;
};

TEST(EngineCatchUp, TheLogServesWhoWasAwayFor200CheapRounds) {
  Away away(CatchUpConfig(0.0005, "global"));  // one position in a round
  const Return result = away.ComeBack();
  EXPECT_EQ(result.resyncs, 0);
  EXPECT_GE(result.deltas, kAway);
  EXPECT_LT(result.bytes, away.fleet().checkpoint_bytes());
  EXPECT_EQ(away.HashOfClient(), away.fleet().engine()->View().head.model_hash);
  std::cout << absl::StrCat(result.deltas, " rounds away, by the log: ", result.bytes, " bytes; a checkpoint has ",
                            away.fleet().checkpoint_bytes(), "\n");
}

TEST(EngineCatchUp, TheCheckpointServesWhoWasAwayFor200DearRounds) {
  Away away(CatchUpConfig(0.1, "per_tensor"));
  const int64_t from = 4, head = away.fleet().engine()->View().head.version;
  const Return result = away.ComeBack();
  EXPECT_EQ(result.resyncs, 1);
  EXPECT_LE(result.deltas, 50);  // those since the checkpoint
  EXPECT_EQ(away.HashOfClient(), away.fleet().engine()->View().head.model_hash);
  std::cout << absl::StrCat(head - from, " rounds away, by the checkpoint and ", result.deltas,
                            " messages after it: ", result.bytes, " bytes\n");
}

}  // namespace
}  // namespace terse
