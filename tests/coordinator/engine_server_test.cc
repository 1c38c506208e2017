// Whole fleets with a server that has a state: a residual of its own, an optimizer, or both.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/sqlite_db.h"
#include "tests/testing/fleet_simulation.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kServerRounds = 11;

RunConfig ServerRun(const std::string& optimizer, const std::string& coded) {
  RunConfig config = GridRunConfig(3, kServerRounds);
  config.server.name = optimizer;
  config.server.learning_rate = 0.5;
  config.downstream = coded == "dense" ? DownstreamMode::kDense : DownstreamMode::kCoded;
  config.downstream_codec.name = coded;
  config.downstream_codec.density = 0.05;
  config.downstream_codec.feedback = "error_feedback";
  return config;
}

void ExpectSound(FleetSimulation& fleet) {
  EXPECT_EQ(CheckReplay(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
            absl::OkStatus());
  EXPECT_EQ(CheckServerSteps(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
            absl::OkStatus());
  for (int64_t i = 0; i < fleet.size(); ++i) {
    EXPECT_EQ(CheckConservation(fleet.store(), fleet.codec(), i, *fleet.state(i)->Read(), {}), absl::OkStatus()) << i;
    EXPECT_EQ(fleet.store()->GetClient(i)->resets, 0) << i;
  }
}

class EngineServer : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(EngineServer, GoesOnWithTheSameStateAfterEveryRestart) {
  FleetSimulation fleet(ServerRun(std::get<0>(GetParam()), std::get<1>(GetParam())), 3);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  // Checkpoints follow every fourth version: restarts come behind one, before one and on one.
  for (int64_t kill = 0; kill < 8; ++kill) {
    for (int64_t step = 0; step < 17 + kill; ++step) ASSERT_EQ(fleet.DeliverAny(nullptr).status(), absl::OkStatus());
    fleet.KillCoordinator();
    ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus()) << kill;
    fleet.ConnectAll();
  }
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  EXPECT_EQ(fleet.engine()->View().head.version, kServerRounds);
  ExpectSound(fleet);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EngineServer,
                         ::testing::Combine(::testing::Values("average", "sgd", "adam", "yogi", "adagrad"),
                                            ::testing::Values("sbc", "qsgd", "low_precision")),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param); });
INSTANTIATE_TEST_SUITE_P(Dense, EngineServer,
                         ::testing::Combine(::testing::Values("sgd", "adam"), ::testing::Values("dense")),
                         [](const auto& info) { return std::get<0>(info.param) + "_dense"; });

class ServerRestart : public ::testing::Test {
 protected:
  ServerRestart() : fleet_(ServerRun("sgd", "sbc"), 3) { EXPECT_EQ(fleet_.StartAll(), absl::OkStatus()); }

  // Runs until a version of at least `version` is the head.
  void RunTo(int64_t version) {
    while (fleet_.engine()->View().head.version < version) {
      ASSERT_TRUE(*fleet_.DeliverAny(nullptr));
    }
  }
  std::string StatePath(const std::string& version) const {
    return fleet_.store_directory() + "/checkpoints/000000000" + version + ".state";
  }
  absl::StatusOr<std::string> Bytes(const std::string& path) { return fleet_.disk(kCoordinator).Read(path); }
  void Damage(const std::string& path) {
    MemoryDisk& disk = fleet_.disk(kCoordinator);
    disk.Start();
    std::string bytes = *Bytes(path);
    bytes[bytes.size() / 2] ^= 1;
    ASSERT_EQ(WriteFileSynced(disk, path, {bytes}), absl::OkStatus());
  }

  // The coordinator's process ends, its database changes, and it starts again.
  absl::Status RestartAfter(const std::string& script) {
    fleet_.KillCoordinator();
    fleet_.disk(kCoordinator).Start();
    {
      const auto db = *SqliteDb::Open(fleet_.store_directory() + "/run.sqlite", SqliteDb::Mode::kWriter,
                                      fleet_.disk(kCoordinator).SqliteVfs());
      EXPECT_EQ(db->Script(script), absl::OkStatus());
    }
    return fleet_.StartCoordinator();
  }

  FleetSimulation fleet_;
};

TEST_F(ServerRestart, ADamagedStateFileIsSkippedWithItsCheckpoint) {
  RunTo(9);
  fleet_.KillCoordinator();
  Damage(StatePath("8"));
  ASSERT_EQ(fleet_.StartCoordinator(), absl::OkStatus());  // from version 4
  EXPECT_EQ(fleet_.store()->NewestCheckpointFile()->version, 4);
  fleet_.ConnectAll();
  ASSERT_EQ(fleet_.Settle(), absl::OkStatus());
  EXPECT_EQ(fleet_.engine()->View().head.version, kServerRounds);
  ExpectSound(fleet_);
}

TEST_F(ServerRestart, AnUpdateThatIsNotTheOneOfTheRoundIsDamage) {
  RunTo(6);
  const absl::Status status = RestartAfter(
      "UPDATE aggregates SET message = (SELECT message FROM aggregates WHERE version = 5) WHERE version = 6");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("version 6"));
}

TEST_F(ServerRestart, AMissingUpdateIsDamage) {
  RunTo(6);
  const absl::Status status = RestartAfter("DELETE FROM aggregates WHERE version = 6");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("restore"));
}

TEST_F(ServerRestart, OldStatesAndUpdatesAreRemovedWithTheirCheckpoints) {
  ASSERT_EQ(fleet_.Settle(), absl::OkStatus());
  EXPECT_EQ(Bytes(StatePath("8")).status(), absl::OkStatus());
  EXPECT_EQ(fleet_.store()->ReadAggregate(5).status(), absl::OkStatus());
  ASSERT_EQ(fleet_.store()->WriteCheckpoint(*fleet_.store()->ReadNewestCheckpoint(), /*keep=*/1), absl::OkStatus());
  EXPECT_EQ(Bytes(StatePath("8")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(fleet_.store()->ReadAggregate(kServerRounds).status().code(), absl::StatusCode::kNotFound);
  fleet_.KillCoordinator();
  EXPECT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
}

TEST_F(ServerRestart, ABackupHasTheState) {
  RunTo(6);
  ASSERT_EQ(fleet_.Quietly([&] { return fleet_.store()->Backup("/backup"); }), absl::OkStatus());
  const auto copy = *RunStore::Open("/backup", fleet_.disk(kCoordinator));
  const Checkpoint checkpoint = *copy->ReadNewestCheckpoint();
  EXPECT_EQ(checkpoint.version, 4);
  EXPECT_EQ(checkpoint.server_state.size(), 2 * GridLayout().size());
  EXPECT_EQ(copy->ReadAggregate(6).status(), absl::OkStatus());
}

TEST_F(ServerRestart, AClientThatWasAwayGetsTheCodedLog) {
  RunTo(2);
  fleet_.KillClient(2);
  RunTo(2);
  const int64_t left_at = fleet_.engine()->View().head.version;
  ASSERT_EQ(fleet_.PassDeadline(), absl::OkStatus());
  ASSERT_EQ(fleet_.StartClient(2), absl::OkStatus());
  fleet_.Connect(2);
  ASSERT_EQ(fleet_.Settle(), absl::OkStatus());
  EXPECT_GT(fleet_.engine()->View().head.version, left_at);
  ExpectSound(fleet_);
}

}  // namespace
}  // namespace terse
