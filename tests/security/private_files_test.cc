// Root writes into a service's folder. The tests change owners, which takes root.
#include "security/private_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/file_system.h"
#include "tests/security/security_testing.h"

namespace terse {
namespace {

constexpr uid_t kNobody = 65534;

struct stat InfoOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info;
}

class PrivateFilesTest : public AuthorityTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
    ASSERT_EQ(chown(directory_.path().c_str(), kNobody, kNobody), 0);
  }
};

TEST(PrivateFilesModeTest, FilesAreForTheirOwner) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/node.key";
  ASSERT_TRUE(ReplacePrivateFile(directory.path(), "node.key", "1").ok());
  WriteFile(directory.path() + "/crl.pem", "old");
  ASSERT_EQ(chmod((directory.path() + "/crl.pem").c_str(), 0644), 0);
  ASSERT_TRUE(ReplacePrivateFile(directory.path(), "crl.pem", "new").ok());
  EXPECT_EQ(ReadFile(path), "1");
  EXPECT_EQ(ReadFile(directory.path() + "/crl.pem"), "new");
  EXPECT_EQ(InfoOf(path).st_mode & 0777u, 0600u);
  EXPECT_EQ(InfoOf(path).st_uid, geteuid());
  EXPECT_TRUE(absl::IsNotFound(ReplacePrivateFile(directory.path() + "/none", "node.key", "1")));
}

TEST(PrivateFilesModeTest, ATemporaryThatIsAlreadyThereIsNotWrittenThrough) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/node.key", temporary = path + kTemporarySuffix;
  WriteFile(temporary, "left");
  ASSERT_EQ(chmod(temporary.c_str(), 0666), 0);
  ASSERT_TRUE(ReplacePrivateFile(directory.path(), "node.key", "1").ok());
  EXPECT_EQ(ReadFile(path), "1");
  EXPECT_EQ(InfoOf(path).st_mode & 0777u, 0600u);
}

TEST_F(PrivateFilesTest, NewAndReplacedFilesAreTheFolderOwners) {
  WriteFile(PathOf("node.crt"), "root's, as an earlier root left it");
  ASSERT_TRUE(ReplacePrivateFile(directory_.path(), "node.crt", "1").ok());
  ASSERT_TRUE(ReplacePrivateFile(directory_.path(), "node.key", "2").ok());
  for (const std::string name : {"node.crt", "node.key"}) {
    EXPECT_EQ(InfoOf(PathOf(name)).st_uid, kNobody) << name;
    EXPECT_EQ(InfoOf(PathOf(name)).st_gid, kNobody) << name;
  }
}

TEST_F(PrivateFilesTest, RootIsRootAgainAfterwards) {
  const TempDirectory own;
  ASSERT_TRUE(ReplacePrivateFile(directory_.path(), "node.crt", "1").ok());
  ASSERT_TRUE(ReplacePrivateFile(own.path(), "node.crt", "1").ok());
  EXPECT_EQ(InfoOf(own.path() + "/node.crt").st_uid, 0u);
  EXPECT_EQ(InfoOf(own.path() + "/node.crt").st_gid, getegid());
}

TEST_F(PrivateFilesTest, LinksOfTheOwnerLeadNowhereElse) {
  const TempDirectory own;
  WriteFile(own.path() + "/precious", "root's");
  std::filesystem::create_symlink(own.path() + "/precious", PathOf("node.crt.tmp"));
  {
    const AsOwner owner(directory_.path());
    EXPECT_TRUE(absl::IsPermissionDenied(PosixFiles().Create(PathOf("node.crt.tmp")).status()));
  }
  EXPECT_TRUE(ReplacePrivateFile(directory_.path(), "node.crt", "1").ok());
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(PathOf("node.crt"))));
  EXPECT_EQ(ReadFile(own.path() + "/precious"), "root's");
}

TEST_F(PrivateFilesTest, AnAuthoritysFilesAreItsOwners) {
  const std::string folder = PathOf("pki");
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(chown(folder.c_str(), kNobody, kNobody), 0);
  const auto authority = NewAuthority();
  Issue(*authority, Role::kClient, "a");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    EXPECT_EQ(InfoOf(entry.path()).st_uid, kNobody) << entry.path();
  }
}

}  // namespace
}  // namespace terse
