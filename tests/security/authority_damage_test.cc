// An authority's folder that is not as it should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "security/authority.h"
#include "tests/security/security_testing.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

class AuthorityDamageTest : public AuthorityTest {
 protected:
  absl::Status Opened() { return Authority::Open(PathOf("pki"), &clock_).status(); }
  absl::Status Created() { return Authority::Create(PathOf("pki"), "test", kLong, &clock_).status(); }
};

TEST_F(AuthorityDamageTest, NoneSaysHowToMakeOne) {
  const absl::Status status = Opened();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("tersectl pki init"));
  EXPECT_FALSE(std::filesystem::exists(PathOf("pki")));
}

TEST_F(AuthorityDamageTest, AnotherIsNotMadeOverIt) {
  const std::string before = NewAuthority()->certificate();
  EXPECT_TRUE(absl::IsAlreadyExists(Created()));
  EXPECT_EQ(ReadFile(PathOf("pki/ca.crt")), before);
  EXPECT_TRUE(Opened().ok());
}

TEST_F(AuthorityDamageTest, AFolderOfOtherThingsIsLeftAlone) {
  ASSERT_EQ(mkdir(PathOf("pki").c_str(), 0755), 0);
  WriteFile(PathOf("pki/thesis.txt"), "text");
  EXPECT_TRUE(absl::IsFailedPrecondition(Created()));
  struct stat info = {};
  ASSERT_EQ(stat(PathOf("pki").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0755u);
  EXPECT_FALSE(std::filesystem::exists(PathOf("pki/ca.key")));
}

TEST_F(AuthorityDamageTest, OneThatWasNotFinishedIsMadeAgain) {
  NewAuthority();
  std::filesystem::remove(PathOf("pki/ca.crt"));
  WriteFile(PathOf("pki/ca.crt.tmp"), "half");
  EXPECT_TRUE(absl::IsNotFound(Opened()));
  EXPECT_TRUE(Created().ok());
  EXPECT_TRUE(Opened().ok());
}

TEST_F(AuthorityDamageTest, OneThatIssuedIsNotMadeAgain) {
  Issue(*NewAuthority(), Role::kClient, "a");
  const std::string key = ReadFile(PathOf("pki/ca.key"));
  std::filesystem::remove(PathOf("pki/ca.crt"));
  EXPECT_TRUE(absl::IsDataLoss(Created()));
  EXPECT_EQ(ReadFile(PathOf("pki/ca.key")), key);
}

TEST_F(AuthorityDamageTest, FilesThatDoNotBelongTogetherAreDataLoss) {
  NewAuthority();
  NewAuthority("other");
  for (const std::string name : {"ca.crt", "ca.key", "crl.pem"}) {
    const std::string path = PathOf("pki/" + name), good = ReadFile(path);
    WriteFile(path, ReadFile(PathOf("other/" + name)));
    EXPECT_TRUE(absl::IsDataLoss(Opened())) << name << ": " << Opened();
    WriteFile(path, good.substr(0, good.size() / 2));
    EXPECT_TRUE(absl::IsDataLoss(Opened())) << name << ": " << Opened();
    if (name != "ca.crt") {
      std::filesystem::remove(path);
      EXPECT_TRUE(absl::IsDataLoss(Opened())) << name << ": " << Opened();
    }
    WriteFile(path, good);
    EXPECT_TRUE(Opened().ok()) << name << ": " << Opened();
  }
}

TEST_F(AuthorityDamageTest, RecordsOfOthersAreDataLoss) {
  const auto authority = NewAuthority();
  const std::string serial = SerialOf(Issue(*authority, Role::kClient, "a"));
  const std::string foreign = Issue(*NewAuthority("other"), Role::kClient, "a");
  const std::string path = PathOf("pki/issued/" + serial + ".crt"), good = ReadFile(path);
  WriteFile(PathOf("pki/issued/" + serial + ".crt.tmp"), "what a crash left");
  EXPECT_EQ(authority->List()->size(), 1u);
  WriteFile(PathOf("pki/issued/" + SerialOf(foreign) + ".crt"), foreign);
  EXPECT_TRUE(absl::IsDataLoss(authority->List().status()));
  std::filesystem::remove(PathOf("pki/issued/" + SerialOf(foreign) + ".crt"));
  WriteFile(PathOf("pki/issued/1.crt"), good);
  EXPECT_TRUE(absl::IsDataLoss(authority->List().status()));
  std::filesystem::remove(PathOf("pki/issued/1.crt"));
  WriteFile(path, good.substr(0, 100));
  const absl::Status cut = authority->Revoke("a").status();
  EXPECT_TRUE(absl::IsDataLoss(cut));
  EXPECT_THAT(std::string(cut.message()), HasSubstr(serial));
}

TEST_F(AuthorityDamageTest, BadNamesAndLifetimesMakeNothing) {
  EXPECT_TRUE(absl::IsInvalidArgument(Authority::Create(PathOf("pki"), "a/b", kLong, &clock_).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Authority::Create(PathOf("pki"), "", kLong, &clock_).status()));
  for (const absl::Duration lifetime : {absl::ZeroDuration(), -kYear, kYear * 9000, absl::InfiniteDuration()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Authority::Create(PathOf("pki"), "a", lifetime, &clock_).status()));
  }
  EXPECT_FALSE(std::filesystem::exists(PathOf("pki")));
}

TEST_F(AuthorityDamageTest, NothingIsIssuedWithoutTheRecordsOfTheRevoked) {
  const auto authority = NewAuthority();
  const std::string gone = Issue(*authority, Role::kClient, "a"), request = NewRequest(Role::kClient, "b", NewKey());
  const std::string record = PathOf("pki/issued/" + SerialOf(gone) + ".crt");
  ASSERT_TRUE(authority->Revoke("a").ok());
  EXPECT_TRUE(authority->Issue(request, kYear).ok());
  WriteFile(record, Issue(*authority, Role::kClient, "b"));
  EXPECT_TRUE(absl::IsDataLoss(authority->Issue(request, kYear).status()));
  std::filesystem::remove(record);
  const absl::Status missing = authority->Issue(request, kYear).status();
  EXPECT_TRUE(absl::IsDataLoss(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr(record));
}

}  // namespace
}  // namespace terse
