#include "core/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/file_modes.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FileSystemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/terse_files_XXXXXX";
    ASSERT_NE(mkdtemp(&pattern[0]), nullptr);
    directory_ = pattern;
  }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  std::string directory_;
};

TEST_F(FileSystemTest, WrittenPartsReadBack) {
  ASSERT_TRUE(WriteFileSynced(PosixFiles(), Path("f"), {"one,", "", "two"}).ok());
  EXPECT_EQ(*PosixFiles().Read(Path("f")), "one,two");
  ASSERT_TRUE(WriteFileSynced(PosixFiles(), Path("f"), {"x"}).ok());
  EXPECT_EQ(*PosixFiles().Read(Path("f")), "x");
  ASSERT_TRUE(WriteFilesSynced(PosixFiles(), {{Path("g"), {"1", "2"}}, {Path("h"), {}}}).ok());
  EXPECT_EQ(*PosixFiles().Read(Path("g")), "12");
  EXPECT_EQ(*PosixFiles().Read(Path("h")), "");
  EXPECT_THAT(*PosixFiles().List(directory_), ElementsAre("f", "g", "h"));
}

TEST_F(FileSystemTest, ReadLimits) {
  EXPECT_EQ(PosixFiles().Read(Path("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(PosixFiles().Read(Path("none")).status().message()), HasSubstr(Path("none")));
  ASSERT_TRUE(WriteFileSynced(PosixFiles(), Path("f"), {"12345"}).ok());
  EXPECT_EQ(PosixFiles().Read(Path("f"), 5)->size(), 5);
  EXPECT_EQ(PosixFiles().Read(Path("f"), 4).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(PosixFiles().Read(directory_).ok());
  // Refused before memory is taken: this file has holes only.
  ASSERT_EQ(truncate(Path("f").c_str(), off_t{1} << 43), 0);
  EXPECT_EQ(PosixFiles().Read(Path("f"), 4).status().code(), absl::StatusCode::kResourceExhausted);
}

// A pipe announces no size.
TEST_F(FileSystemTest, ReadsAPipeToItsEnd) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  for (const size_t size : {0, 1, 2, 3, 200000}) {
    const std::string contents(size, 'p');
    std::thread writer([&] { std::ofstream(Path("pipe")) << contents; });
    EXPECT_EQ(*PosixFiles().Read(Path("pipe"), static_cast<int64_t>(size)), contents);
    writer.join();
  }
}

TEST_F(FileSystemTest, ReplaceLeavesNoTemporaryAndFailsCleanly) {
  ASSERT_TRUE(ReplaceFile(PosixFiles(), Path("f"), {"old"}).ok());
  ASSERT_TRUE(ReplaceFile(PosixFiles(), Path("f"), {"new"}).ok());
  EXPECT_EQ(*PosixFiles().Read(Path("f")), "new");
  EXPECT_THAT(*PosixFiles().List(directory_), ElementsAre("f"));
  const absl::Status status = ReplaceFile(PosixFiles(), Path("none/f"), {"x"});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("none/f")));
}

TEST_F(FileSystemTest, MakesParentsPrivately) {
  ASSERT_TRUE(PosixFiles().MakeDirectory(Path("a/b//c/")).ok());
  ASSERT_TRUE(PosixFiles().MakeDirectory(Path("a/b/c")).ok());
  struct stat info;
  for (const char* name : {"a", "a/b", "a/b/c"}) {
    ASSERT_EQ(stat(Path(name).c_str(), &info), 0);
    EXPECT_TRUE(S_ISDIR(info.st_mode));
    EXPECT_EQ(info.st_mode & 0777, 0700) << name;
  }
  ASSERT_TRUE(WriteFileSynced(PosixFiles(), Path("file"), {"x"}).ok());
  EXPECT_EQ(PosixFiles().MakeDirectory(Path("file")).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(PosixFiles().MakeDirectory(Path("file/below")).ok());
  EXPECT_EQ(PosixFiles().MakeDirectory("").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FileSystemTest, SaysWhatToDoWhereNoDirectoryMayBeMade) {
  ASSERT_TRUE(PosixFiles().MakeDirectory(Path("closed")).ok());
  ASSERT_EQ(chmod(Path("closed").c_str(), 0555), 0);
  const bool root = geteuid() == 0;  // who may write everywhere
  constexpr uid_t kNobody = 65534;
  if (root) {
    ASSERT_EQ(chmod(Path("").c_str(), 0755), 0);
    ASSERT_EQ(seteuid(kNobody), 0);
  }
  const absl::Status status = PosixFiles().MakeDirectory(Path("closed/new"));
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_EQ(status, absl::PermissionDeniedError(absl::StrCat(
                        "cannot create directory ", Path("closed/new"),
                        ": Permission denied; name one where this user may write, or have it made for this user")));
}

TEST_F(FileSystemTest, RemoveIsIdempotent) {
  ASSERT_TRUE(WriteFileSynced(PosixFiles(), Path("f"), {"x"}).ok());
  EXPECT_TRUE(PosixFiles().Remove(Path("f")).ok());
  EXPECT_TRUE(PosixFiles().Remove(Path("f")).ok());
  EXPECT_FALSE(PosixFiles().Remove(directory_).ok());
}

TEST_F(FileSystemTest, LockIsExclusiveUntilReleased) {
  auto first = PosixFiles().Lock(directory_);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = PosixFiles().Lock(directory_).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()), HasSubstr(directory_));
  first->reset();
  EXPECT_TRUE(PosixFiles().Lock(directory_).ok());
}

mode_t ModeOf(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST_F(FileSystemTest, WhatItWritesAndLocksIsItsOwnersAlone) {
  const mode_t before = umask(0);
  const std::string old_file = directory_ + "/old", new_file = directory_ + "/new", made = directory_ + "/made/below";
  ASSERT_TRUE(WriteFileSynced(PosixFiles(), old_file, {"x"}).ok());
  ASSERT_EQ(chmod(old_file.c_str(), 0644), 0);
  ASSERT_TRUE(WriteFileSynced(PosixFiles(), old_file, {"y"}).ok());
  ASSERT_TRUE(WriteFileSynced(PosixFiles(), new_file, {"x"}).ok());
  ASSERT_TRUE(PosixFiles().MakeDirectory(made).ok());
  ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  EXPECT_TRUE(PosixFiles().Lock(directory_).ok());
  umask(before);
  for (const std::string& file : {old_file, new_file, directory_ + "/lock"}) EXPECT_EQ(ModeOf(file), 0600u) << file;
  for (const std::string& folder : {directory_, made, directory_ + "/made"}) EXPECT_EQ(ModeOf(folder), 0700u) << folder;
}

TEST_F(FileSystemTest, FoldersForEverybodyAndDevicesStayAsTheyAre) {
  ASSERT_EQ(chmod(directory_.c_str(), 01777), 0);
  EXPECT_TRUE(MakePrivate(directory_).ok());
  EXPECT_EQ(ModeOf(directory_), 01777u);
  const mode_t null_device = ModeOf("/dev/null");
  EXPECT_TRUE(MakePrivate("/dev/null").ok());
  EXPECT_EQ(ModeOf("/dev/null"), null_device);
  EXPECT_TRUE(MakePrivate(directory_ + "/none").ok());
}

TEST_F(FileSystemTest, FullDiskIsNamed) {
  const absl::Status status = WriteFileSynced(PosixFiles(), "/dev/full", {"x"});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full"));
  EXPECT_TRUE(IsDiskTrouble(status));
}

// The null device takes every write and cannot be synced.
TEST_F(FileSystemTest, FailedSyncIsNotMistakenForADiskThatRecovers) {
  const absl::Status status = WriteFileSynced(PosixFiles(), "/dev/null", {"x"});
  EXPECT_TRUE(IsSyncFailure(status)) << status;
  EXPECT_FALSE(IsDiskTrouble(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/null"));
}

}  // namespace
}  // namespace terse
