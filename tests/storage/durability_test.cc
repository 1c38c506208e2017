// The order of fsyncs and renames, which no look at the files afterwards can show, and what happens when the disk
// fails. This file stands in for the C library's fsync, fdatasync and rename in the whole test program.
#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>

#include "core/file_io.h"
#include "storage/client_state.h"
#include "tests/storage/storage_testing.h"

namespace {

std::mutex mutex;
std::vector<std::string>* calls = nullptr;  // null: nobody listens
bool disk_fails = false;

std::string LastPart(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

int Note(const std::string& call, const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (calls != nullptr) calls->push_back(call + " " + LastPart(path));
  if (!disk_fails) return 0;
  errno = EIO;
  return -1;
}

std::string PathOf(int fd) {
  char path[PATH_MAX];
  const ssize_t size = readlink(absl::StrCat("/proc/self/fd/", fd).c_str(), path, sizeof path);
  return size < 0 ? "?" : std::string(path, static_cast<size_t>(size));
}

}  // namespace

extern "C" {
int fsync(int fd) { return Note("fsync", PathOf(fd)) != 0 ? -1 : static_cast<int>(syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { return Note("fsync", PathOf(fd)) != 0 ? -1 : static_cast<int>(syscall(SYS_fdatasync, fd)); }
int rename(const char* from, const char* to) noexcept {
  return Note("rename", to) != 0 ? -1 : static_cast<int>(syscall(SYS_rename, from, to));
}
}

namespace terse {
namespace {

using ::testing::ElementsAre;

// Records the calls that `body` makes; the temporary directory's own name reads "DIR".
template <typename Body>
std::vector<std::string> CallsOf(const TempDirectory& directory, Body body) {
  std::vector<std::string> seen;
  calls = &seen;
  body();
  calls = nullptr;
  for (std::string& call : seen) {
    if (absl::EndsWith(call, LastPart(directory.Path()))) call = "fsync DIR";
  }
  return seen;
}

SealedUpdate Update(uint64_t n) {
  SealedUpdate update;
  update.update_id = Id128{2, n};
  update.message = "message";
  return update;
}

TEST(DurabilityOrder, ASealSyncsItsBlobsBeforeTheManifestNamesThem) {
  TempDirectory directory;
  auto state = ClientState::Open(directory.Path()).value();
  EXPECT_THAT(CallsOf(directory,
                      [&] {
                        EXPECT_OK(state->Begin(Id128{1, 1}, Durability::kStrict));
                      }),
              ElementsAre("fsync MANIFEST.tmp", "rename MANIFEST", "fsync DIR"));
  EXPECT_THAT(CallsOf(directory, [&] { EXPECT_OK(state->Seal({1.0f}, Update(1), "trainer")); }),
              ElementsAre("fsync dense.1", "fsync outbox.1", "fsync trainer.1", "fsync DIR", "fsync MANIFEST.tmp",
                          "rename MANIFEST", "fsync DIR"));
  EXPECT_THAT(CallsOf(directory, [&] { EXPECT_OK(state->Settle(true)); }),
              ElementsAre("fsync MANIFEST.tmp", "rename MANIFEST", "fsync DIR"));
}

TEST(DurabilityOrder, RelaxedSealsTouchNoDisk) {
  TempDirectory directory;
  auto state = ClientState::Open(directory.Path()).value();
  ASSERT_OK(state->Begin(Id128{1, 1}, Durability::kRelaxed));
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
              ElementsAre("fsync run.sqlite-wal"));
  EXPECT_THAT(CallsOf(directory, [&] { EXPECT_OK(store->CommitRound(TestCommit(1), true)); }),
              ElementsAre("fsync run.sqlite-wal"));
  EXPECT_THAT(
      CallsOf(directory, [&] { EXPECT_OK(store->WriteCheckpoint(TestCheckpoint(1), 5)); }),
      ElementsAre("fsync 0000000001.ckpt.tmp", "rename 0000000001.ckpt", "fsync checkpoints", "fsync run.sqlite-wal"));
}

TEST(DurabilityFailure, AStoreWhoseCommitFailedWritesNothingUntilItIsReopened) {
  TempDirectory directory;
  auto store = RunStore::Open(directory.Path()).value();
  ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
  disk_fails = true;
  EXPECT_CODE(store->OpenRound(1, 0, 1), kUnavailable, "check the disk");
  disk_fails = false;
  EXPECT_CODE(store->OpenRound(1, 0, 1), kUnavailable, "restart the coordinator");
  EXPECT_OK(store->GetHead().status());
  store.reset();
  store = RunStore::Open(directory.Path()).value();
  // The round may have been opened or not; either way the store goes on.
  if (!store->LastRound().value().has_value()) {
    EXPECT_OK(store->OpenRound(1, 0, 1));
  }
  EXPECT_OK(store->AbortRound(1, "test", 2));
}

TEST(DurabilityFailure, AClientWhoseDiskFailsKeepsItsState) {
  TempDirectory directory;
  auto state = ClientState::Open(directory.Path()).value();
  ASSERT_OK(state->Begin(Id128{1, 1}, Durability::kStrict));
  disk_fails = true;
  EXPECT_CODE(state->Seal({1.0f}, Update(1), "t"), kUnavailable, "flush to disk");
  disk_fails = false;
  EXPECT_FALSE(state->state().sealed.has_value());
  EXPECT_EQ(state->state().generation, 0);
  EXPECT_OK(state->Seal({1.0f}, Update(1), "t"));
}

}  // namespace
}  // namespace terse
