// The order of fsyncs and renames, which no look at the files afterwards can show.
#include "core/file_system.h"
#include "storage/client_state.h"
#include "tests/storage/client_state_testing.h"
#include "tests/storage/storage_testing.h"
#include "tests/storage/system_calls.h"

namespace terse {
namespace {

using ::testing::ElementsAre;

std::string LastPart(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// Records the syncs and renames that `body` makes; the temporary directory's own name reads "DIR".
template <typename Body>
std::vector<std::string> CallsOf(const TempDirectory& directory, Body body) {
  std::vector<std::string> seen;
  const SystemCallWatch watch([&](absl::string_view call, const std::string& path) {
    if (call == "rename" || call == "sync") {
      seen.push_back(absl::StrCat(call, " ", LastPart(path) == LastPart(directory.Path()) ? "DIR" : LastPart(path)));
    }
    return 0;
  });
  body();
  return seen;
}

TEST(DurabilityOrder, ASealSyncsItsBlobsBeforeTheManifestNamesThem) {
  TempDirectory directory;
  auto state = ClientState::Open(directory.Path()).value();
  EXPECT_THAT(CallsOf(directory,
                      [&] {
                        EXPECT_OK(state->Begin(Id128{1, 1}, Id128{1, 1}, Durability::kStrict));
                      }),
              ElementsAre("sync MANIFEST.tmp", "rename MANIFEST", "sync DIR"));
  EXPECT_THAT(CallsOf(directory, [&] { EXPECT_OK(state->Seal({1.0f}, Update(1), "trainer")); }),
              ElementsAre("sync dense.1", "sync outbox.1", "sync trainer.1", "sync DIR", "sync MANIFEST.tmp",
                          "rename MANIFEST", "sync DIR"));
  EXPECT_THAT(CallsOf(directory, [&] { EXPECT_OK(state->Settle(true)); }),
              ElementsAre("sync MANIFEST.tmp", "rename MANIFEST", "sync DIR"));
  ASSERT_OK(state->Seal({2.0f}, Update(2), "trainer"));
  ASSERT_OK(state->Settle(true));
  // The third overwrites the blobs of the first.
  EXPECT_THAT(CallsOf(directory, [&] { EXPECT_OK(state->Seal({3.0f}, Update(3), "trainer")); }),
              ElementsAre("rename dense.3", "rename outbox.3", "rename trainer.3", "sync dense.3", "sync outbox.3",
                          "sync trainer.3", "sync DIR", "sync MANIFEST.tmp", "rename MANIFEST", "sync DIR"));
}

TEST(DurabilityOrder, RelaxedSealsTouchNoDisk) {
  TempDirectory directory;
  auto state = ClientState::Open(directory.Path()).value();
  ASSERT_OK(state->Begin(Id128{1, 1}, Id128{1, 1}, Durability::kRelaxed));
  EXPECT_THAT(CallsOf(directory,
                      [&] {
                        EXPECT_OK(state->Seal({1.0f}, Update(1), "trainer"));
                        EXPECT_OK(state->Settle(true));
                      }),
              ElementsAre());
}

TEST(DurabilityOrder, EveryCommitSyncsTheLogOnce) {
  TempDirectory directory;
  auto store = RunStore::Open(directory.Path()).value();
  ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
  ASSERT_OK(store->RegisterClient("a", 1).status());
  ASSERT_OK(store->OpenRound(1, 0, 1));
  EXPECT_THAT(CallsOf(directory, [&] { EXPECT_OK(store->CloseRound(1, {TestUpdate(0, 1, Id128())}, 2)); }),
              ElementsAre("sync run.sqlite-wal"));
  EXPECT_THAT(CallsOf(directory, [&] { EXPECT_OK(store->CommitRound(TestCommit(1), true)); }),
              ElementsAre("sync run.sqlite-wal"));
  EXPECT_THAT(
      CallsOf(directory, [&] { EXPECT_OK(store->WriteCheckpoint(TestCheckpoint(1), 5)); }),
      ElementsAre("sync 0000000001.ckpt.tmp", "rename 0000000001.ckpt", "sync checkpoints", "sync run.sqlite-wal"));
}

}  // namespace
}  // namespace terse
