// MOVE of a client's state between the lineages of a family, and what every crash leaves behind.
#include <cerrno>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/file_system.h"
#include "core/random.h"
#include "storage/client_files.h"
#include "storage/parted_lineages.h"
#include "tests/storage/client_state_testing.h"
#include "tests/testing/memory_disk.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Id128 kFamily{1, 10};
constexpr Id128 kOther{1, 2};
constexpr Id128 kStranger{7, 7};

class Moves : public ::testing::TestWithParam<Durability> {
 protected:
  Moves() : state_(OpenState(directory_.Path())) {
    EXPECT_OK(state_->Begin(kLineage, kFamily, GetParam()));
    EXPECT_OK(SealNumber(*state_, 1));
    EXPECT_OK(state_->Settle(true));
    EXPECT_OK(SealNumber(*state_, 2));
  }

  // Whatever the durability, the next process finds after an orderly end what this one has.
  void ExpectKept() {
    const std::string before = Describe(*state_);
    if (GetParam() == Durability::kStrict) {
      EXPECT_EQ(Reopened(directory_.Path()), before);
    }
    ASSERT_OK(state_->Flush());
    EXPECT_EQ(Reopened(directory_.Path()), before);
    EXPECT_EQ(Describe(*state_), before);
  }
  const StoredHead& head() const { return state_->state(); }

  TempDirectory directory_;
  std::unique_ptr<ClientState> state_;
};

TEST_P(Moves, PartsWithWhatIsSealed) {
  EXPECT_EQ(state_->Move(kOther, Dense(20)).value(), 0);
  ExpectKept();
  EXPECT_EQ(head().lineage, kOther);
  EXPECT_EQ(head().family, kFamily);
  EXPECT_EQ(head().generation, 2) << "a move seals nothing";
  EXPECT_TRUE(head().prev_applied.IsZero());
  EXPECT_FALSE(head().sealed.has_value());
  EXPECT_EQ(head().minus, "");
  const StoredState stored = *state_->Read();
  EXPECT_EQ(stored.dense, Dense(20));
  EXPECT_EQ(stored.trainer_state, "trainer 2");
  EXPECT_EQ(stored.history, "");
  ASSERT_EQ(head().parted.size(), 1);
  EXPECT_EQ(head().parted[0].lineage, kLineage);
  EXPECT_EQ(head().parted[0].prev_applied, Update(1).update_id);
  EXPECT_EQ(head().parted[0].sealed->message, "message 2");
  EXPECT_EQ(head().parted[0].sealed->cohort.clients, 2);
}

TEST_P(Moves, SealsAgainWhatWasPartedWith) {
  ASSERT_OK(state_->Move(kOther, Dense(20)).status());
  ASSERT_OK(SealNumber(*state_, 3));
  ExpectKept();
  ASSERT_OK(state_->Settle(true));
  ExpectKept();
  ASSERT_OK(state_->Move(kLineage, Dense(30)).status());
  ExpectKept();
  EXPECT_EQ(head().lineage, kLineage);
  EXPECT_EQ(head().prev_applied, Update(1).update_id);
  ASSERT_TRUE(head().sealed.has_value());
  EXPECT_EQ(head().sealed->update_id, Update(2).update_id);
  EXPECT_EQ(head().sealed->round, 2);
  EXPECT_EQ(head().sealed->message, "message 2");
  EXPECT_EQ(head().sealed->cohort.samples, 20);
  EXPECT_EQ(state_->Read()->dense, Dense(30));
  ASSERT_EQ(head().parted.size(), 1);
  EXPECT_EQ(head().parted[0].lineage, kOther);
  EXPECT_EQ(head().parted[0].prev_applied, Update(3).update_id);
  EXPECT_FALSE(head().parted[0].sealed.has_value());
  ASSERT_OK(state_->Settle(true));
  ExpectKept();
  EXPECT_EQ(head().minus, "message 2");
  EXPECT_EQ(head().prev_applied, Update(2).update_id);
  EXPECT_EQ(state_->Read()->trainer_state, "trainer 3");
  ASSERT_OK(SealNumber(*state_, 4));
  EXPECT_EQ(head().generation, 4);
  ExpectKept();
}

TEST_P(Moves, WithoutAResidualThereIsNoFile) {
  ASSERT_OK(state_->Move(kOther, {}).status());
  ExpectKept();
  EXPECT_FALSE(head().has_dense);
  EXPECT_TRUE(state_->Read()->dense.empty());
}

TEST_P(Moves, AResetKeepsWhatIsPartedWith) {
  ASSERT_OK(state_->Move(kOther, Dense(20)).status());
  ASSERT_OK(state_->Reset(Id128{9, 9}));
  ExpectKept();
  EXPECT_FALSE(head().has_dense);
  ASSERT_EQ(head().parted.size(), 1);
  EXPECT_TRUE(head().parted[0].sealed.has_value());
}

TEST_P(Moves, AnotherRunDropsEverything) {
  for (const Id128 lineage : {kStranger, kOther}) {
    ASSERT_OK(state_->Move(lineage == kOther ? kLineage : kOther, Dense(20)).status());
    ASSERT_OK(state_->Begin(lineage, kStranger, GetParam()));
    EXPECT_TRUE(head().parted.empty());
    EXPECT_EQ(head().family, kStranger);
    EXPECT_FALSE(head().has_dense);
    ExpectKept();
    EXPECT_THAT(*PosixFiles().List(directory_.Path()), ElementsAre("MANIFEST", "lock"));
  }
  // The same lineage in another family is another run as well.
  ASSERT_OK(SealNumber(*state_, 1));
  ASSERT_OK(state_->Begin(kOther, kFamily, GetParam()));
  EXPECT_FALSE(head().sealed.has_value());
  ExpectKept();
}

TEST_P(Moves, BeginKeepsWhatIsPartedWith) {
  ASSERT_OK(state_->Move(kOther, Dense(20)).status());
  const std::string before = Describe(*state_);
  for (const Durability durability : {Durability::kStrict, Durability::kRelaxed, Durability::kStrict}) {
    ASSERT_OK(state_->Begin(kOther, kFamily, durability));
    EXPECT_EQ(Describe(*state_), before);
    ASSERT_OK(state_->Flush());
    EXPECT_EQ(Reopened(directory_.Path()), before);
  }
}

TEST_P(Moves, OnlyToAnotherLineage) {
  const std::string before = Describe(*state_);
  EXPECT_CODE(state_->Move(kLineage, Dense(1)).status(), kInvalidArgument, "another");
  EXPECT_CODE(state_->Move(Id128(), Dense(1)).status(), kInvalidArgument, "another");
  EXPECT_CODE(state_->Begin(kLineage, Id128(), GetParam()), kInvalidArgument, "family");
  EXPECT_EQ(Describe(*state_), before);
  TempDirectory fresh;
  EXPECT_CODE(OpenState(fresh.Path())->Move(kOther, {}).status(), kFailedPrecondition, "Begin first");
}

TEST_P(Moves, TheOldestUpdateMakesRoom) {
  for (uint64_t n = 1; n <= ClientState::kMostParted + 2; ++n) {
    const int64_t lost = state_->Move(Id128{3, n}, Dense(n)).value();
    EXPECT_EQ(lost, n > ClientState::kMostParted ? 1 : 0) << n;
    ASSERT_OK(SealNumber(*state_, 2 + n));
  }
  ASSERT_EQ(head().parted.size(), ClientState::kMostParted + 2);
  // What else was kept for the lineages of the oldest ones stays.
  EXPECT_FALSE(head().parted[0].sealed.has_value());
  EXPECT_EQ(head().parted[0].prev_applied, Update(1).update_id);
  EXPECT_FALSE(head().parted[1].sealed.has_value());
  EXPECT_EQ(head().parted[2].sealed->update_id, Update(4).update_id);
  ExpectKept();
}

TEST_P(Moves, TheOldestLineageWithoutAnUpdateMakesRoom) {
  for (uint64_t n = 1; n <= kMostPartedLineages + 3; ++n) EXPECT_EQ(state_->Move(Id128{3, n}, {}).value(), 0);
  ASSERT_EQ(head().parted.size(), kMostPartedLineages);
  EXPECT_EQ(head().parted[0].lineage, kLineage) << "which has an update";
  EXPECT_TRUE(head().parted[0].sealed.has_value());
  EXPECT_EQ(head().parted[1].lineage, (Id128{3, 4}));
  ExpectKept();
}

INSTANTIATE_TEST_SUITE_P(ClientState, Moves, ::testing::Values(Durability::kStrict, Durability::kRelaxed),
                         [](const auto& info) { return info.param == Durability::kStrict ? "Strict" : "Relaxed"; });

// Moves without a seal between them, and the seal after them, find names that the manifest does not use.
TEST(MovesOnDisk, EveryStepHasNamesOfItsOwn) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kFamily, Durability::kStrict));
  ASSERT_OK(SealNumber(*state, 1));
  const auto files = [&] { return *PosixFiles().List(directory.Path()); };
  ASSERT_OK(state->Move(kOther, Dense(20)).status());
  EXPECT_THAT(files(), ElementsAre("MANIFEST", "dense.2", "lock", "parted.2", "trainer.1"));
  ASSERT_OK(state->Move(kLineage, Dense(30)).status());
  EXPECT_THAT(files(), ElementsAre("MANIFEST", "dense.3", "lock", "outbox.3", "parted.3", "trainer.1"));
  ASSERT_OK(state->Settle(true));
  ASSERT_OK(SealNumber(*state, 2));
  EXPECT_THAT(files(), ElementsAre("MANIFEST", "dense.3", "dense.4", "history.4", "lock", "outbox.3", "outbox.4",
                                   "parted.3", "trainer.1", "trainer.4"));
  EXPECT_EQ(Reopened(directory.Path()), Describe(*state));
}

TEST(MovesOnDisk, ARelaxedDeathLosesWhatIsPartedWith) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kFamily, Durability::kRelaxed));
  ASSERT_OK(SealNumber(*state, 1));
  ASSERT_OK(state->Move(kOther, Dense(20)).status());
  EXPECT_THAT(*PosixFiles().List(directory.Path()), ElementsAre("MANIFEST", "lock"));
  state.reset();
  state = OpenState(directory.Path());
  EXPECT_TRUE(state->lost());
  EXPECT_EQ(state->state().lineage, kOther);
  EXPECT_EQ(state->state().family, kFamily);
  EXPECT_TRUE(state->state().parted.empty());
  ASSERT_OK(state->Begin(kOther, kFamily, Durability::kRelaxed));
  EXPECT_FALSE(state->lost());
}

TEST(MovesOnDisk, AMoveAcknowledgesTheLoss) {
  TempDirectory directory;
  OpenState(directory.Path())->Begin(kLineage, kFamily, Durability::kRelaxed).IgnoreError();
  auto state = OpenState(directory.Path());
  ASSERT_TRUE(state->lost());
  ASSERT_OK(state->Move(kOther, {}).status());
  EXPECT_FALSE(state->lost());
  EXPECT_EQ(Reopened(directory.Path()), Describe(*state));
}

// The state of a lineage is in one place.
TEST(MovesOnDisk, ALineageCannotBeLeftAndNotLeft) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kFamily, Durability::kStrict));
  ASSERT_OK(state->Move(kOther, {}).status());
  state.reset();
  Manifest manifest = ReadManifest(PosixFiles(), directory.Path()).value();
  const std::string parted = SerializeParted({{kOther, Id128(), absl::nullopt}});
  manifest.parted.hash = HashBytes(parted);
  ASSERT_EQ(manifest.parted.size, parted.size());
  ASSERT_OK(WriteFileSynced(PosixFiles(), directory.Path("parted.0"), {parted}));
  ASSERT_OK(WriteFileSynced(PosixFiles(), directory.Path("MANIFEST"), {SerializeManifest(manifest)}));
  EXPECT_CODE(ClientState::Open(directory.Path()).status(), kDataLoss, "the lineage that the manifest is of");
}

// A flipped bit is found by its checksum; lineages that nobody wrote are found by what they say.
TEST(MovesOnDisk, DamageNamesTheFileAndTheRemedy) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kFamily, Durability::kStrict));
  ASSERT_OK(SealNumber(*state, 1));
  ASSERT_OK(state->Move(kOther, Dense(20)).status());
  const std::string whole = *PosixFiles().Read(directory.Path("parted.2"));
  const auto refusal = [&](const std::string& parted) {
    TempDirectory copy;
    CopyDirectory(directory.Path(), copy.Path());
    EXPECT_OK(WriteFileSynced(PosixFiles(), copy.Path("parted.2"), {parted}));
    const absl::Status status = ClientState::Open(copy.Path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr(copy.Path("parted.2") + " is damaged: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr("--reset-state"));
    return std::string(status.message());
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
    refusal(flipped);
    refusal(whole.substr(0, i));
  }
  refusal(whole + "x");
  std::filesystem::remove(directory.Path("parted.2"));
  EXPECT_CODE(ClientState::Open(directory.Path()).status(), kFailedPrecondition, "in use");
  state.reset();
  EXPECT_CODE(ClientState::Open(directory.Path()).status(), kDataLoss, "parted.2 is damaged");
}

// The power goes at every operation of every move, and of what was not synced any part is still there.
class PowerLoss : public ::testing::TestWithParam<Durability> {
 protected:
  static constexpr char kDirectory[] = "/client";

  static std::string Found(MemoryDisk& disk) {
    const auto state = ClientState::Open(kDirectory, disk);
    if (!state.ok()) return state.status().ToString();
    return absl::StrCat((*state)->lost() ? "lost " : "", Describe(**state));
  }
  // Makes the disk lose its power at operation `at` of `call`, and returns what the next process finds; empty when the
  // call came to its end.
  static std::string AfterLoss(const std::function<void(ClientState&)>& prepare,
                               const std::function<absl::Status(ClientState&)>& call, int at, uint64_t seed) {
    MemoryDisk disk(seed);
    Random random(seed);
    auto state = ClientState::Open(kDirectory, disk).value();
    prepare(*state);
    int left = at;
    disk.set_fault([&](DiskOp, const std::string&) {
      if (--left != 0) return 0;
      disk.LosePower(&random);
      return EIO;
    });
    const bool done = call(*state).ok() && left > 0;
    disk.set_fault(nullptr);
    if (done) return "";
    state.reset();
    if (!disk.running()) disk.Start();
    return Found(disk);
  }
  static std::string AfterDeath(const std::function<void(ClientState&)>& prepare,
                                const std::function<absl::Status(ClientState&)>& call) {
    MemoryDisk disk;
    auto state = ClientState::Open(kDirectory, disk).value();
    prepare(*state);
    if (call) {
      EXPECT_OK(call(*state));
    }
    disk.Kill();
    state.reset();
    disk.Start();
    return Found(disk);
  }
};

TEST_P(PowerLoss, LeavesTheOldStateOrTheNew) {
  const auto begin = [](ClientState& state) {
    ASSERT_OK(state.Begin(kLineage, kFamily, GetParam()));
    ASSERT_OK(SealNumber(state, 1));
  };
  const auto leave = [&](ClientState& state) {
    begin(state);
    ASSERT_OK(state.Move(kOther, Dense(20)).status());
    ASSERT_OK(SealNumber(state, 2));
  };
  const auto go = [](ClientState& state) { return state.Move(kOther, Dense(20)).status(); };
  const auto come_back = [](ClientState& state) { return state.Move(kLineage, Dense(30)).status(); };
  const std::pair<std::function<void(ClientState&)>, std::function<absl::Status(ClientState&)>> moves[] = {
      {begin, go}, {leave, come_back}};
  for (const auto& [prepare, call] : moves) {
    const std::string before = AfterDeath(prepare, nullptr), after = AfterDeath(prepare, call);
    ASSERT_NE(before, after);
    std::set<std::string> seen;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      int at = 1;
      for (std::string found; !(found = AfterLoss(prepare, call, at, seed)).empty(); ++at) {
        EXPECT_TRUE(found == before || found == after) << "operation " << at << ", seed " << seed << ": " << found;
        seen.insert(found);
      }
      EXPECT_GT(at, 4);
    }
    EXPECT_THAT(seen, ::testing::UnorderedElementsAre(before, after));
  }
}

INSTANTIATE_TEST_SUITE_P(ClientState, PowerLoss, ::testing::Values(Durability::kStrict, Durability::kRelaxed),
                         [](const auto& info) { return info.param == Durability::kStrict ? "Strict" : "Relaxed"; });

}  // namespace
}  // namespace terse
