// The client's side of the protocol (docs/PROTOCOL.md): what every crash leaves behind.
#include "storage/client_state.h"

#include <chrono>
#include <functional>

#include "core/file_system.h"
#include "tests/storage/client_state_testing.h"

namespace terse {
namespace {

using ::testing::ElementsAre;

TEST(ClientState, AFreshDirectoryBelongsToNoRun) {
  TempDirectory directory;
  auto state = OpenState(directory.Path("new/state"));
  EXPECT_TRUE(state->state().lineage.IsZero());
  EXPECT_FALSE(state->lost());
  EXPECT_CODE(SealNumber(*state, 1), kFailedPrecondition, "Begin first");
  EXPECT_CODE(state->Settle(true), kFailedPrecondition, "Begin first");
  EXPECT_CODE(state->Reset(Id128()), kFailedPrecondition, "Begin first");
  EXPECT_CODE(state->Begin(Id128(), Id128(), Durability::kStrict), kInvalidArgument, "lineage");
  EXPECT_OK(state->Flush());
  EXPECT_CODE(ClientState::Open(directory.Path("new/state")).status(), kFailedPrecondition, "in use");
}

TEST(ClientState, EveryStrictStepIsOnDiskWhenItReturns) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  const std::function<absl::Status()> steps[] = {
      [&] { return state->Begin(kLineage, kLineage, Durability::kStrict); },
      [&] { return SealNumber(*state, 1); },
      [&] { return state->Settle(true); },
      [&] { return SealNumber(*state, 2); },
      [&] { return state->Settle(false); },
      [&] { return SealNumber(*state, 3); },
      [&] {
        return state->Reset(Id128{9, 9});
      },
      [&] { return SealNumber(*state, 4); },
      [&] { return state->Seal({}, Update(5), ""); },  // refused: changes nothing
      [&] { return state->Settle(true); },
      [&] { return state->Begin(kLineage, kLineage, Durability::kStrict); },  // the same run: kept
      [&] {
        return state->Begin(Id128{3, 3}, Id128{3, 3}, Durability::kStrict);
      },
  };
  std::vector<std::string> seen;
  int step_number = 0;
  for (const auto& step : steps) {
    SCOPED_TRACE(++step_number);
    EXPECT_EQ(step().ok(), step_number != 9);
    seen.push_back(Describe(*state));
    EXPECT_EQ(Reopened(directory.Path()), seen.back());
  }
  EXPECT_THAT(seen[1], ::testing::HasSubstr(
                           "generation 1 prev 00000000000000000000000000000000 dense [1,-1.5,0] minus "
                           "'' trainer 'trainer 1' history 'history 1' sealed 00000000000000020000000000000001 1 0 123 "
                           "0.25 'message 1'"));
  EXPECT_THAT(seen[2], ::testing::HasSubstr("prev 00000000000000020000000000000001 dense [1,-1.5,0] minus 'message 1' "
                                            "trainer 'trainer 1' history 'history 1'"));
  EXPECT_THAT(seen[4], ::testing::HasSubstr("generation 2 prev 00000000000000020000000000000001 dense [2,-1.5,0] minus "
                                            "'' trainer 'trainer 2' history 'history 2'"));
  EXPECT_THAT(seen[6], ::testing::HasSubstr("generation 3 prev 00000000000000090000000000000009 dense [] minus '' "
                                            "trainer 'trainer 3' history ''"));
  EXPECT_EQ(seen[7], seen[8]);
  EXPECT_EQ(seen[9], seen[10]);
  EXPECT_THAT(seen[11], ::testing::HasSubstr("generation 0 prev 00000000000000000000000000000000 dense []"));
  EXPECT_THAT(*PosixFiles().List(directory.Path()), ElementsAre("MANIFEST", "lock"));
}

TEST(ClientState, RefusesStepsOutOfOrder) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
  EXPECT_CODE(state->Settle(true), kFailedPrecondition, "nothing to settle");
  ASSERT_OK(SealNumber(*state, 1));
  EXPECT_CODE(SealNumber(*state, 2), kFailedPrecondition, "settle it first");
  ASSERT_OK(state->Settle(false));
  SealedUpdate nameless = Update(2);
  nameless.update_id = Id128();
  EXPECT_CODE(state->Seal(Dense(2), nameless, ""), kInvalidArgument, "id");
}

TEST(ClientState, EmptyPartsNeedNoFiles) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
  SealedUpdate update = Update(1);
  update.message.clear();
  ASSERT_OK(state->Seal({}, update, ""));
  EXPECT_EQ(Reopened(directory.Path()), Describe(*state));
  ASSERT_OK(state->Settle(true));
  EXPECT_EQ(Reopened(directory.Path()), Describe(*state));
  EXPECT_THAT(*PosixFiles().List(directory.Path()), ElementsAre("MANIFEST", "lock"));
}

// The view that Seal gets may be of the state itself.
TEST(ClientState, SealsAViewOfItsOwnResidual) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
  ASSERT_OK(SealNumber(*state, 1));
  ASSERT_OK(state->Settle(false));
  ASSERT_OK(state->Seal(state->Read()->dense, Update(2), "t"));
  EXPECT_EQ(state->Read()->dense, Dense(1));
  EXPECT_EQ(Reopened(directory.Path()), Describe(*state));
}

// Kills inside SEAL: any of the new blobs whole, partial or absent, with the old manifest: the old state. With the new
// manifest: the new state, though old blobs may linger.
TEST(ClientState, ACrashInsideSealLeavesTheOldStateOrTheNew) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
  for (int number : {1, 2}) {
    ASSERT_OK(SealNumber(*state, number));
    ASSERT_OK(state->Settle(true));
  }
  const std::string before = Describe(*state);
  TempDirectory old_files;
  CopyDirectory(directory.Path(), old_files.Path());
  ASSERT_OK(SealNumber(*state, 3));
  const std::string after = Describe(*state);
  // The third seal overwrote the blobs of the first, and the fourth will overwrite those of the second.
  const std::string kinds[] = {"dense", "history", "outbox", "trainer"};
  EXPECT_THAT(*PosixFiles().List(directory.Path()),
              ElementsAre("MANIFEST", "dense.2", "dense.3", "history.2", "history.3", "lock", "outbox.2", "outbox.3",
                          "trainer.2", "trainer.3"));

  for (int mask = 0; mask < 81; ++mask) {
    TempDirectory crashed;
    CopyDirectory(old_files.Path(), crashed.Path());
    for (int i = 0, rest = mask; i < 4; ++i, rest /= 3) {
      ASSERT_TRUE(std::filesystem::exists(crashed.Path(kinds[i] + ".1")));
      if (rest % 3 == 0) continue;
      const std::string blob = kinds[i] + ".3";
      std::filesystem::remove(crashed.Path(kinds[i] + ".1"));
      std::filesystem::copy_file(directory.Path(blob), crashed.Path(blob));
      if (rest % 3 == 1) std::filesystem::resize_file(crashed.Path(blob), 3);
    }
    std::filesystem::copy_file(directory.Path("MANIFEST"), crashed.Path("MANIFEST.tmp"));
    std::filesystem::resize_file(crashed.Path("MANIFEST.tmp"), static_cast<uintmax_t>(mask));
    auto reopened = OpenState(crashed.Path());
    EXPECT_EQ(Describe(*reopened), before);
    EXPECT_THAT(*PosixFiles().List(crashed.Path()),
                ElementsAre("MANIFEST", "dense.2", "history.2", "lock", "outbox.2", "trainer.2"));
    ASSERT_OK(SealNumber(*reopened, 3));
    EXPECT_EQ(Describe(*reopened), after);
    EXPECT_EQ(Reopened(crashed.Path()), after);
  }
  EXPECT_EQ(Reopened(directory.Path()), after);
  state.reset();
  EXPECT_EQ(Describe(*OpenState(directory.Path())), after);
  EXPECT_THAT(*PosixFiles().List(directory.Path()),
              ElementsAre("MANIFEST", "dense.3", "history.3", "lock", "outbox.3", "trainer.3"));
}

TEST(ClientState, ABlobThatIsOverwrittenTakesItsLengthWithIt) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
  uint64_t number = 0;
  for (size_t size : {10, 500, 3, 200, 1, 0, 70}) {
    SealedUpdate update = Update(static_cast<int>(++number));
    update.message = std::string(size + 1, 'm');
    ASSERT_OK(state->Seal(std::vector<float>(size, 1.5f), update, std::string(size, 't')));
    EXPECT_EQ(Reopened(directory.Path()), Describe(*state)) << size;
    ASSERT_OK(state->Settle(number % 2 == 0));
  }
}

TEST(ClientState, SettlingRewritesOnlyTheManifest) {
  for (bool applied : {true, false}) {
    TempDirectory directory;
    auto state = OpenState(directory.Path());
    ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
    ASSERT_OK(SealNumber(*state, 1));
    const auto time = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
    for (const char* name : {"dense.1", "history.1", "outbox.1", "trainer.1"}) {
      std::filesystem::last_write_time(directory.Path(name), time);
    }
    ASSERT_OK(state->Settle(applied));
    EXPECT_EQ(std::filesystem::last_write_time(directory.Path("dense.1")), time);
    EXPECT_EQ(std::filesystem::last_write_time(directory.Path("trainer.1")), time);
    EXPECT_EQ(std::filesystem::last_write_time(directory.Path("history.1")), time);
    state.reset();
    OpenState(directory.Path()).reset();
    EXPECT_EQ(std::filesystem::exists(directory.Path("outbox.1")), applied);
  }
}

TEST(ClientState, DamageNamesTheFileAndTheRemedy) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
  ASSERT_OK(SealNumber(*state, 1));
  for (const char* name : {"MANIFEST", "dense.1", "outbox.1", "trainer.1"}) {
    const std::string whole = *PosixFiles().Read(directory.Path(name));
    TempDirectory copy;
    const auto expect_refused = [&](const std::function<void(const std::string& path)>& damage) {
      CopyDirectory(directory.Path(), copy.Path());
      damage(copy.Path(name));
      const absl::Status status = ClientState::Open(copy.Path()).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << name << " " << status;
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(copy.Path(name)));
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("terse-client --state DIR --reset-state"));
    };
    expect_refused([](const std::string& path) { std::filesystem::remove(path); });
    expect_refused([&](const std::string& path) { ASSERT_OK(WriteFileSynced(PosixFiles(), path, {whole, "x"})); });
    for (size_t size = 0; size < whole.size(); ++size) {
      expect_refused([&](const std::string& path) { std::filesystem::resize_file(path, size); });
    }
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
      expect_refused([&](const std::string& path) { ASSERT_OK(WriteFileSynced(PosixFiles(), path, {flipped})); });
    }
  }
}

TEST(ClientState, OthersFilesAreLeftAlone) {
  TempDirectory directory;
  OpenState(directory.Path())->Begin(kLineage, kLineage, Durability::kStrict).IgnoreError();
  for (const char* name : {"dense.1", "outbox.12", "trainer.3", "notes.1", "dense", "dense.txt"}) {
    ASSERT_OK(WriteFileSynced(PosixFiles(), directory.Path(name), {"x"}));
  }
  OpenState(directory.Path());
  EXPECT_THAT(*PosixFiles().List(directory.Path()), ElementsAre("MANIFEST", "dense", "dense.txt", "lock", "notes.1"));
}

// A blob that cannot be written keeps the manifest as it is, and the client may try again.
TEST(ClientState, AFailedBlobChangesNothing) {
  for (const char* name : {"dense.1", "history.1", "outbox.1", "trainer.1"}) {
    TempDirectory directory;
    auto state = OpenState(directory.Path());
    ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
    const std::string before = Describe(*state);
    std::filesystem::create_directory(directory.Path(name));
    EXPECT_FALSE(SealNumber(*state, 1).ok());
    EXPECT_EQ(Describe(*state), before);
    EXPECT_EQ(Reopened(directory.Path()), before);
    std::filesystem::remove(directory.Path(name));
    EXPECT_OK(SealNumber(*state, 1));
  }
}

TEST(ClientStateRelaxed, ACrashLosesTheResidualAndSaysSo) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kRelaxed));
  ASSERT_OK(SealNumber(*state, 1));
  ASSERT_OK(state->Settle(true));
  EXPECT_EQ(state->state().minus, "message 1");
  EXPECT_THAT(*PosixFiles().List(directory.Path()), ElementsAre("MANIFEST", "lock"));
  state.reset();  // no Flush: as a crash
  for (int i = 0; i < 2; ++i) {
    state = OpenState(directory.Path());
    EXPECT_TRUE(state->lost());
    EXPECT_EQ(state->state().lineage, kLineage);
    EXPECT_FALSE(state->state().has_dense);
    EXPECT_TRUE(state->state().prev_applied.IsZero());
    EXPECT_FALSE(state->state().sealed.has_value());
    ASSERT_OK(state->Flush());  // must not hide the loss from the next process
    state.reset();
  }
  state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
  EXPECT_FALSE(state->lost());
  state.reset();
  EXPECT_FALSE(OpenState(directory.Path())->lost());
}

TEST(ClientStateRelaxed, FlushKeepsEverythingAndTheNextChangeIsDirtyAgain) {
  const std::pair<const char*, std::function<absl::Status(ClientState&)>> changes[] = {
      {"seal", [](ClientState& state) { return SealNumber(state, 3); }},
      {"reset",
       [](ClientState& state) {
         return state.Reset(Id128{9, 9});
       }},
      {"begin", [](ClientState& state) { return state.Begin(kLineage, kLineage, Durability::kRelaxed); }},
  };
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    TempDirectory directory;
    auto state = OpenState(directory.Path());
    ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kRelaxed));
    ASSERT_OK(SealNumber(*state, 1));
    ASSERT_OK(state->Settle(true));
    ASSERT_OK(SealNumber(*state, 2));
    ASSERT_OK(state->Flush());
    ASSERT_OK(state->Flush());
    const std::string flushed = Describe(*state);
    EXPECT_EQ(Reopened(directory.Path()), flushed);
    ASSERT_OK(state->Settle(true));
    ASSERT_OK(state->Flush());
    EXPECT_EQ(Reopened(directory.Path()), Describe(*state));
    ASSERT_OK(change(*state));
    const std::string changed = Describe(*state);
    TempDirectory copy;
    CopyDirectory(directory.Path(), copy.Path());
    EXPECT_TRUE(OpenState(copy.Path())->lost());
    ASSERT_OK(state->Flush());
    EXPECT_EQ(Reopened(directory.Path()), changed);
  }
}

TEST(ClientStateRelaxed, TheManifestIsWrittenOnce) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kRelaxed));
  const auto time = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(directory.Path("MANIFEST"), time);
  for (uint64_t n = 1; n < 4; ++n) {
    ASSERT_OK(SealNumber(*state, n));
    ASSERT_OK(state->Settle(n % 2 == 0));
  }
  ASSERT_OK(state->Reset(Id128()));
  EXPECT_EQ(std::filesystem::last_write_time(directory.Path("MANIFEST")), time);
}

// A run may change its durability between two processes, or a process may meet both.
TEST(ClientStateRelaxed, StrictAndRelaxedFollowEachOther) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
  ASSERT_OK(SealNumber(*state, 1));
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kRelaxed));
  EXPECT_EQ(state->Read()->dense, Dense(1));
  TempDirectory copy;
  CopyDirectory(directory.Path(), copy.Path());
  EXPECT_TRUE(OpenState(copy.Path())->lost());
  ASSERT_OK(state->Settle(true));
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
  EXPECT_EQ(Reopened(directory.Path()), Describe(*state));
  EXPECT_EQ(state->state().minus, "message 1");
}

TEST(ClientStateRelaxed, ResetAcknowledgesTheLoss) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kRelaxed));
  state.reset();
  state = OpenState(directory.Path());
  ASSERT_TRUE(state->lost());
  ASSERT_OK(state->Reset(Id128{4, 4}));
  EXPECT_FALSE(state->lost());
  EXPECT_EQ(Reopened(directory.Path()), Describe(*state));
}

TEST(ClientState, TheCachedModelIsWholeOrAbsent) {
  TempDirectory directory;
  auto state = OpenState(directory.Path());
  EXPECT_EQ(state->LoadModel().has_value(), false);
  ASSERT_OK(state->SaveModel({kLineage, 12, Dense(5)}));
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
  state.reset();
  state = OpenState(directory.Path());
  const auto model = state->LoadModel();
  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(model->lineage, kLineage);
  EXPECT_EQ(model->version, 12);
  EXPECT_EQ(model->weights, Dense(5));
  const std::string whole = *PosixFiles().Read(directory.Path("model"));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    ASSERT_OK(WriteFileSynced(PosixFiles(), directory.Path("model"), {flipped}));
    EXPECT_FALSE(state->LoadModel().has_value());
    ASSERT_OK(WriteFileSynced(PosixFiles(), directory.Path("model"), {whole.substr(0, i)}));
    EXPECT_FALSE(state->LoadModel().has_value());
  }
}

}  // namespace
}  // namespace terse
