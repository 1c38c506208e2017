// The coordinator's process ends at every boundary of a round and starts again.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/sqlite_db.h"
#include "tests/testing/fleet_simulation.h"
#include "tests/testing/scripted_client.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRestartRounds = 5;

void ReconnectAll(FleetSimulation& fleet) {
  for (int64_t i = 0; i < fleet.size(); ++i) {
    if (fleet.connected(i)) continue;
    fleet.Connect(i);
  }
}

void FinishAndCheck(FleetSimulation& fleet) {
  ReconnectAll(fleet);
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  EXPECT_EQ(fleet.engine()->View().head.version, kRestartRounds);
  EXPECT_TRUE(fleet.engine()->View().ended);
  EXPECT_EQ(CheckReplay(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
            absl::OkStatus());
  for (int64_t i = 0; i < fleet.size(); ++i) {
    EXPECT_EQ(CheckConservation(fleet.store(), fleet.codec(), i, *fleet.state(i)->Read(), {}), absl::OkStatus());
    EXPECT_EQ(fleet.store()->GetClient(i)->resets, 0);
  }
}

struct Boundary {
  const char* call;
  bool after;
  int64_t nth;
};

class RestartAt : public ::testing::TestWithParam<Boundary> {};

TEST_P(RestartAt, TheRunGoesOnAndNothingIsLost) {
  FleetSimulation fleet(GridRunConfig(3, kRestartRounds), 3);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  fleet.store()->fault = [left = GetParam().nth](absl::string_view call, bool after) mutable {
    const bool here = call == GetParam().call && after == GetParam().after;
    return here && --left == 0 ? absl::InternalError("the process ends here") : absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsInternal(fleet.Settle()));
  ASSERT_FALSE(fleet.coordinator_up());
  ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  FinishAndCheck(fleet);
}

std::string BoundaryName(const ::testing::TestParamInfo<Boundary>& info) {
  return absl::StrCat(info.param.after ? "After" : "Before", info.param.call, info.param.nth);
}

INSTANTIATE_TEST_SUITE_P(EngineRestart, RestartAt,
                         ::testing::Values(Boundary{"OpenRound", false, 1}, Boundary{"OpenRound", true, 1},
                                           Boundary{"CloseRound", false, 1}, Boundary{"CloseRound", true, 1},
                                           Boundary{"CloseRound", false, 3}, Boundary{"CloseRound", true, 3},
                                           Boundary{"CommitRound", false, 1}, Boundary{"CommitRound", true, 1},
                                           Boundary{"CommitRound", false, 5}, Boundary{"CommitRound", true, 5},
                                           Boundary{"CommitBatch", false, 1}, Boundary{"CommitBatch", true, 1},
                                           Boundary{"CommitBatch", false, 9}, Boundary{"CommitBatch", true, 9},
                                           Boundary{"CommitBatch", false, 20}, Boundary{"CommitBatch", true, 20},
                                           Boundary{"WriteCheckpoint", false, 1}, Boundary{"WriteCheckpoint", true, 1},
                                           Boundary{"SetEvaluation", false, 1}, Boundary{"SetRunState", false, 1},
                                           Boundary{"SetRunState", true, 1}, Boundary{"AddLedger", false, 1}),
                         BoundaryName);

class Restart : public ::testing::Test {
 protected:
  Restart() : fleet_(GridRunConfig(2, kRestartRounds), 2) { EXPECT_EQ(fleet_.StartAll(), absl::OkStatus()); }

  void RunTo(int64_t version) {
    while (fleet_.engine()->View().head.version < version) ASSERT_TRUE(*fleet_.DeliverAny(nullptr));
  }
  void Execute(const std::string& sql) {
    MemoryDisk& disk = fleet_.disk(kCoordinator);
    disk.Start();
    const auto db = SqliteDb::Open(absl::StrCat(fleet_.store_directory(), "/run.sqlite"), SqliteDb::Mode::kWriter,
                                   disk.SqliteVfs());
    ASSERT_EQ(db.status(), absl::OkStatus());
    ASSERT_EQ((*db)->InTransaction([&] { return (*db)->Prepare(sql).RunForOne("no such row"); }), absl::OkStatus());
  }

  FleetSimulation fleet_;
};

TEST_F(Restart, AnOpenRoundContinues) {
  RunTo(2);
  const int64_t round = fleet_.engine()->View().round;
  fleet_.KillCoordinator();
  ASSERT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
  EXPECT_EQ(fleet_.engine()->View().round, round);
  EXPECT_EQ(fleet_.engine()->View().phase, "collecting updates");
  FinishAndCheck(fleet_);
  EXPECT_EQ((*fleet_.store()->LastRound())->id, kRestartRounds);  // no round was lost
}

// Closing and committing are one transaction, so nothing of either is left.
TEST_F(Restart, ARoundThatWasNotCommittedIsStillOpen) {
  RunTo(1);
  fleet_.store()->fault = [](absl::string_view call, bool after) {
    return call == "CommitRound" && !after ? absl::InternalError("here") : absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsInternal(fleet_.Settle()));
  ASSERT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
  EXPECT_EQ(**fleet_.store()->GetRoundState(2), RoundState::kOpen);
  EXPECT_EQ(fleet_.engine()->View().head.version, 1);
  FinishAndCheck(fleet_);
  EXPECT_EQ((*fleet_.store()->LastRound())->id, kRestartRounds);
}

TEST_F(Restart, TheHeadIsTheCheckpointPlusTheLog) {
  RunTo(3);  // the newest checkpoint is version 0
  const Head head = fleet_.engine()->View().head;
  const std::vector<float> weights = fleet_.engine()->weights();
  fleet_.KillCoordinator();
  ASSERT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
  EXPECT_EQ(fleet_.store()->NewestCheckpointFile()->version, 0);
  EXPECT_EQ(fleet_.engine()->View().head.model_hash, head.model_hash);
  EXPECT_EQ(fleet_.engine()->weights(), weights);
}

TEST_F(Restart, ADamagedHeadIsRefused) {
  RunTo(2);
  fleet_.KillCoordinator();
  Execute("UPDATE head SET model_hash = x'00112233445566778899aabbccddeeff'");
  const absl::Status status = fleet_.StartCoordinator();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("backup"));
}

TEST_F(Restart, ADamagedLogIsRefused) {
  RunTo(2);
  fleet_.KillCoordinator();
  Execute("UPDATE downstream_log SET message = substr(message, 1, length(message) - 1) WHERE version = 2");
  EXPECT_FALSE(fleet_.StartCoordinator().ok());
}

TEST_F(Restart, ADamagedCheckpointFallsBackToAnOlderOne) {
  RunTo(4);
  ASSERT_EQ(fleet_.store()->NewestCheckpointFile()->version, 4);
  const std::string path = fleet_.store()->NewestCheckpointFile()->path;
  fleet_.KillCoordinator();
  MemoryDisk& disk = fleet_.disk(kCoordinator);
  disk.Start();
  std::string bytes = *disk.Read(path);
  bytes.pop_back();
  ASSERT_EQ(WriteFileSynced(disk, path, {bytes}), absl::OkStatus());
  ASSERT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
  EXPECT_EQ(EventsOf(fleet_, "checkpoint_damaged").size(), 1);
  FinishAndCheck(fleet_);
}

TEST_F(Restart, AFinishedRunStaysFinished) {
  ASSERT_EQ(fleet_.Settle(), absl::OkStatus());
  fleet_.KillCoordinator();
  ASSERT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
  EXPECT_TRUE(fleet_.engine()->View().ended);
  EXPECT_TRUE(fleet_.background()->evaluated_rounds.empty());
  fleet_.Connect(0);
  ASSERT_EQ(fleet_.Settle(), absl::OkStatus());
  EXPECT_EQ(fleet_.last_result(0), absl::OkStatus());
  EXPECT_EQ(fleet_.engine()->View().head.version, kRestartRounds);
}

TEST(EngineRestart, AStoreWithoutARunIsRefused) {
  TempDirectory directory;
  const std::unique_ptr<RunStore> store = *RunStore::Open(directory.path());
  FakeClock clock;
  Engine::Options options;
  options.store = store.get();
  options.clock = &clock;
  EXPECT_TRUE(absl::IsFailedPrecondition(Engine::Resume(std::move(options)).status()));
}

}  // namespace
}  // namespace terse
