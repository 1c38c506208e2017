#include "tests/testing/memory_disk.h"

#include <errno.h>

#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

constexpr int kLosses = 300;

// A disk with the directory /d.
class MemoryDiskTest : public testing::Test {
 protected:
  MemoryDiskTest() { EXPECT_EQ(disk_.MakeDirectory("/d"), absl::OkStatus()); }

  absl::Status Write(const std::string& path, const std::string& bytes, bool sync) {
    absl::StatusOr<std::unique_ptr<WritableFile>> file = disk_.Create(path);
    if (!file.ok()) return file.status();
    absl::Status status = (*file)->Append(bytes);
    return status.ok() && sync ? (*file)->Sync() : status;
  }

  std::string Contents(const std::string& path) {
    const absl::StatusOr<std::string> bytes = disk_.Read(path);
    return bytes.ok() ? *bytes : absl::StrCat("<", absl::StatusCodeToString(bytes.status().code()), ">");
  }

  // Counts what `path` holds after a power loss, over many of them: each starts from the same unsynced changes.
  std::map<std::string, int> Outcomes(const std::function<void()>& prepare, const std::string& path) {
    std::map<std::string, int> outcomes;
    for (int i = 0; i < kLosses; ++i) {
      prepare();
      disk_.LosePower(&random_);
      disk_.Start();
      ++outcomes[Contents(path)];
    }
    return outcomes;
  }

  Random random_{7};
  MemoryDisk disk_{7};
};

TEST_F(MemoryDiskTest, KeepsWhatWasSynced) {
  const auto outcomes = Outcomes(
      [&] {
        ASSERT_EQ(Write("/d/a", "synced", /*sync=*/true), absl::OkStatus());
        ASSERT_EQ(disk_.SyncDirectory("/d"), absl::OkStatus());
      },
      "/d/a");
  EXPECT_EQ(outcomes, (std::map<std::string, int>{{"synced", kLosses}}));
}

TEST_F(MemoryDiskTest, MayLoseANameThatWasNotSynced) {
  const auto outcomes = Outcomes(
      [&] {
        ASSERT_EQ(disk_.Remove("/d/a"), absl::OkStatus());
        ASSERT_EQ(disk_.SyncDirectory("/d"), absl::OkStatus());
        ASSERT_EQ(Write("/d/a", "synced", /*sync=*/true), absl::OkStatus());
      },
      "/d/a");
  EXPECT_EQ(outcomes.size(), 2);
  EXPECT_GT(outcomes.at("synced"), kLosses / 10);
  EXPECT_GT(outcomes.at("<NOT_FOUND>"), kLosses / 10);
}

TEST_F(MemoryDiskTest, TearsUnsyncedWritesAtSectors) {
  const std::string one(kSectorBytes, '1');
  const auto outcomes = Outcomes(
      [&] {
        ASSERT_EQ(Write("/d/a", "", /*sync=*/true), absl::OkStatus());
        ASSERT_EQ(disk_.SyncDirectory("/d"), absl::OkStatus());
        ASSERT_EQ(Write("/d/a", absl::StrCat(one, one, one), /*sync=*/false), absl::OkStatus());
      },
      "/d/a");
  const std::string zero(kSectorBytes, '\0');
  // The outcomes are nothing, a short file, holes, a tail of zeros, and everything.
  for (const std::string& expected : {std::string(), one, absl::StrCat(zero, one), absl::StrCat(zero, zero, zero),
                                      absl::StrCat(one, zero, zero), absl::StrCat(one, one, one)}) {
    EXPECT_GT(outcomes.count(expected), 0) << expected.size();
  }
  for (const auto& [bytes, count] : outcomes) {
    EXPECT_EQ(bytes.size() % kSectorBytes, 0);
    for (size_t at = 0; at < bytes.size(); at += kSectorBytes) {
      const std::string sector = bytes.substr(at, kSectorBytes);
      EXPECT_TRUE(sector == one || sector == zero);
    }
  }
}

TEST_F(MemoryDiskTest, RenameHappensWholeOrNotAtAll) {
  const auto prepare = [&] {
    ASSERT_EQ(Write("/d/a", "old", /*sync=*/true), absl::OkStatus());
    ASSERT_EQ(Write("/d/b", "new", /*sync=*/true), absl::OkStatus());
    ASSERT_EQ(disk_.SyncDirectory("/d"), absl::OkStatus());
    ASSERT_EQ(disk_.Rename("/d/b", "/d/a"), absl::OkStatus());
  };
  std::set<std::string> seen;
  for (int i = 0; i < kLosses; ++i) {
    prepare();
    disk_.LosePower(&random_);
    disk_.Start();
    seen.insert(absl::StrCat(Contents("/d/a"), " ", Contents("/d/b")));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"old new", "new <NOT_FOUND>"}));
}

TEST_F(MemoryDiskTest, ReplaceFileIsAtomicAndDurable) {
  std::string current = "0";
  ASSERT_EQ(ReplaceFile(disk_, "/d/a", {current}), absl::OkStatus());
  for (int i = 1; i <= kLosses; ++i) {
    const std::string next(static_cast<size_t>(1 + i % 1400), static_cast<char>('a' + i % 26));
    int64_t left = static_cast<int64_t>(random_.Below(8));
    disk_.set_fault([&](DiskOp, const std::string&) {
      if (left-- == 0) disk_.LosePower(&random_);
      return 0;
    });
    const bool done = ReplaceFile(disk_, "/d/a", {next}).ok();
    disk_.set_fault(nullptr);
    if (disk_.running()) disk_.LosePower(&random_);
    disk_.Start();
    const std::string found = Contents("/d/a");
    ASSERT_TRUE(found == next || (found == current && !done)) << i;
    current = found;
  }
}

TEST_F(MemoryDiskTest, DeadProcessKeepsItsWritesAndNothingElse) {
  auto file = disk_.Create("/d/a");
  ASSERT_TRUE(file.ok());
  auto lock = disk_.Lock("/d");
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(disk_.Lock("/d").status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ((*file)->Append("written"), absl::OkStatus());
  disk_.Kill();
  EXPECT_FALSE((*file)->Append("!").ok());
  EXPECT_FALSE(disk_.Read("/d/a").ok());
  EXPECT_FALSE(disk_.Create("/d/b").ok());
  disk_.Start();
  EXPECT_FALSE((*file)->Append("!").ok());
  EXPECT_EQ(Contents("/d/a"), "written");
  EXPECT_EQ(Contents("/d/b"), "<NOT_FOUND>");
  auto next = disk_.Lock("/d");
  ASSERT_TRUE(next.ok());
  lock->reset();  // the dead process's is of no account
  EXPECT_EQ(disk_.Lock("/d").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(MemoryDiskTest, FullDiskRefusesWritesAndKeepsTheRest) {
  ASSERT_EQ(Write("/d/a", std::string(100, 'a'), /*sync=*/true), absl::OkStatus());
  disk_.set_capacity(150);
  EXPECT_EQ(Write("/d/b", std::string(100, 'b'), /*sync=*/true).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Contents("/d/a"), std::string(100, 'a'));
  EXPECT_EQ(disk_.Remove("/d/a"), absl::OkStatus());
  EXPECT_EQ(Write("/d/b", std::string(100, 'b'), /*sync=*/true), absl::OkStatus());
  EXPECT_EQ(disk_.used(), 100);
}

TEST_F(MemoryDiskTest, NothingIsWrittenAgainAfterAFailedSync) {
  std::set<std::string> seen;
  for (int i = 0; i < kLosses; ++i) {
    auto file = disk_.Create("/d/a");
    ASSERT_TRUE(file.ok() && (*file)->Append("unlucky").ok() && disk_.SyncDirectory("/d").ok());
    disk_.set_fault([](DiskOp op, const std::string&) { return op == DiskOp::kSync ? EIO : 0; });
    EXPECT_EQ((*file)->Sync().code(), absl::StatusCode::kUnknown);
    disk_.set_fault(nullptr);
    EXPECT_EQ((*file)->Sync(), absl::OkStatus());
    EXPECT_EQ(Contents("/d/a"), "unlucky");
    disk_.LosePower(&random_);
    disk_.Start();
    seen.insert(Contents("/d/a"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"", "unlucky"}));
}

TEST_F(MemoryDiskTest, FaultsHaveTheirStatus) {
  const auto fails_with = [&](DiskOp failing, int error) {
    disk_.set_fault([=](DiskOp op, const std::string&) { return op == failing ? error : 0; });
    const absl::Status status = ReplaceFile(disk_, "/d/a", {"new"});
    disk_.set_fault(nullptr);
    EXPECT_EQ(Contents("/d/a"), failing == DiskOp::kSyncDirectory ? "new" : "old");
    return status;
  };
  ASSERT_EQ(ReplaceFile(disk_, "/d/a", {"old"}), absl::OkStatus());
  EXPECT_TRUE(IsDiskTrouble(fails_with(DiskOp::kOpen, ENOSPC)));
  EXPECT_TRUE(IsDiskTrouble(fails_with(DiskOp::kWrite, ENOSPC)));
  EXPECT_TRUE(IsDiskTrouble(fails_with(DiskOp::kWrite, EIO)));
  EXPECT_TRUE(IsSyncFailure(fails_with(DiskOp::kSync, EIO)));
  EXPECT_TRUE(IsDiskTrouble(fails_with(DiskOp::kRename, EIO)));
  EXPECT_TRUE(IsSyncFailure(fails_with(DiskOp::kSyncDirectory, EIO)));
}

TEST_F(MemoryDiskTest, AnOldCopyCanBePutBack) {
  ASSERT_EQ(Write("/d/a", "old", /*sync=*/false), absl::OkStatus());
  const auto copy = disk_.Snapshot();
  ASSERT_EQ(Write("/d/a", "new", /*sync=*/true), absl::OkStatus());
  ASSERT_EQ(Write("/d/b", "new", /*sync=*/true), absl::OkStatus());
  disk_.Kill();
  disk_.Restore(*copy);
  disk_.Start();
  EXPECT_EQ(Contents("/d/a"), "old");
  EXPECT_EQ(*disk_.List("/d"), std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace terse
