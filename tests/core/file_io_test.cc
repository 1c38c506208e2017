#include "core/file_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FileIoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/terse_file_io_XXXXXX";
    ASSERT_NE(mkdtemp(&pattern[0]), nullptr);
    directory_ = pattern;
  }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  std::string directory_;
};

TEST_F(FileIoTest, WrittenPartsReadBack) {
  ASSERT_TRUE(WriteFileSynced(Path("f"), {"one,", "", "two"}).ok());
  EXPECT_EQ(*ReadFile(Path("f")), "one,two");
  ASSERT_TRUE(WriteFileSynced(Path("f"), {"x"}).ok());
  EXPECT_EQ(*ReadFile(Path("f")), "x");
  ASSERT_TRUE(WriteFilesSynced({{Path("g"), {"1", "2"}}, {Path("h"), {}}}).ok());
  EXPECT_EQ(*ReadFile(Path("g")), "12");
  EXPECT_EQ(*ReadFile(Path("h")), "");
  EXPECT_THAT(*ListDirectory(directory_), ElementsAre("f", "g", "h"));
}

TEST_F(FileIoTest, ReadLimits) {
  EXPECT_EQ(ReadFile(Path("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadFile(Path("none")).status().message()), HasSubstr(Path("none")));
  ASSERT_TRUE(WriteFileSynced(Path("f"), {"12345"}).ok());
  EXPECT_EQ(ReadFile(Path("f"), 5)->size(), 5);
  EXPECT_EQ(ReadFile(Path("f"), 4).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(ReadFile(directory_).ok());
  // Refused before memory is taken: this file has holes only.
  ASSERT_EQ(truncate(Path("f").c_str(), off_t{1} << 43), 0);
  EXPECT_EQ(ReadFile(Path("f"), 4).status().code(), absl::StatusCode::kResourceExhausted);
}

// A pipe announces no size.
TEST_F(FileIoTest, ReadsAPipeToItsEnd) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  for (const size_t size : {0, 1, 2, 3, 200000}) {
    const std::string contents(size, 'p');
    std::thread writer([&] { std::ofstream(Path("pipe")) << contents; });
    EXPECT_EQ(*ReadFile(Path("pipe"), static_cast<int64_t>(size)), contents);
    writer.join();
  }
}

TEST_F(FileIoTest, ReplaceLeavesNoTemporaryAndFailsCleanly) {
  ASSERT_TRUE(ReplaceFile(Path("f"), {"old"}).ok());
  ASSERT_TRUE(ReplaceFile(Path("f"), {"new"}).ok());
  EXPECT_EQ(*ReadFile(Path("f")), "new");
  EXPECT_THAT(*ListDirectory(directory_), ElementsAre("f"));
  const absl::Status status = ReplaceFile(Path("none/f"), {"x"});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("none/f")));
}

TEST_F(FileIoTest, MakesParentsPrivately) {
  ASSERT_TRUE(MakeDirectory(Path("a/b//c/")).ok());
  ASSERT_TRUE(MakeDirectory(Path("a/b/c")).ok());
  struct stat info;
  for (const char* name : {"a", "a/b", "a/b/c"}) {
    ASSERT_EQ(stat(Path(name).c_str(), &info), 0);
    EXPECT_TRUE(S_ISDIR(info.st_mode));
    EXPECT_EQ(info.st_mode & 0777, 0700) << name;
  }
  ASSERT_TRUE(WriteFileSynced(Path("file"), {"x"}).ok());
  EXPECT_EQ(MakeDirectory(Path("file")).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(MakeDirectory(Path("file/below")).ok());
  EXPECT_EQ(MakeDirectory("").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FileIoTest, RemoveIsIdempotent) {
  ASSERT_TRUE(WriteFileSynced(Path("f"), {"x"}).ok());
  EXPECT_TRUE(RemoveFile(Path("f")).ok());
  EXPECT_TRUE(RemoveFile(Path("f")).ok());
  EXPECT_FALSE(RemoveFile(directory_).ok());
}

TEST_F(FileIoTest, LockIsExclusiveUntilReleased) {
  auto first = DirectoryLock::Acquire(directory_);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = DirectoryLock::Acquire(directory_).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()), HasSubstr(directory_));
  first->reset();
  EXPECT_TRUE(DirectoryLock::Acquire(directory_).ok());
}

TEST_F(FileIoTest, FullDiskIsNamed) {
  const absl::Status status = WriteFileSynced("/dev/full", {"x"});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full"));
}

}  // namespace
}  // namespace terse
