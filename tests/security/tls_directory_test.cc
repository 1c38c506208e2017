#include "security/tls_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "security/live_tls_directory.h"
#include "tests/security/security_testing.h"

namespace terse {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class TlsDirectoryTest : public AuthorityTest {
 protected:
  TlsDirectoryTest() : authority_(NewAuthority()) {}

  // A folder of the fleet's, as `tersectl pki issue` makes it.
  std::string MakeFolder(const std::string& folder, Role role) {
    const std::string path = PathOf(folder), key = NewKey();
    std::filesystem::create_directory(path);
    WriteFile(path + "/node.key", key);
    WriteFile(path + "/node.crt", Issue(*authority_, role, folder, key));
    WriteFile(path + "/ca.crt", authority_->certificate());
    return path;
  }

  absl::Status Opened(const std::string& path, Role role) { return OpenTlsDirectory(path, {role}, Now()).status(); }

  // Expects the refusal to name `file` and to say `text`.
  static void ExpectRefusal(const absl::Status& status, absl::StatusCode code, const std::string& file,
                            const std::string& text) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(file));
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  const std::unique_ptr<Authority> authority_;
};

TEST_F(TlsDirectoryTest, EveryRoleOpensItsOwn) {
  for (const Role role : AllRoles()) {
    const std::string path = MakeFolder(std::string(RoleName(role)), role);
    const auto opened = OpenTlsDirectory(path, {role}, Now());
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->path, path);
    EXPECT_TRUE((opened->certificate.identity == Identity{role, std::string(RoleName(role))}));
  }
}

TEST_F(TlsDirectoryTest, OneOfSeveralRolesIsEnough) {
  const std::string path = MakeFolder("a", Role::kOperator);
  EXPECT_TRUE(OpenTlsDirectory(path, {Role::kObserver, Role::kOperator}, Now()).ok());
  ExpectRefusal(OpenTlsDirectory(path, {Role::kObserver, Role::kClient}, Now()).status(),
                absl::StatusCode::kFailedPrecondition, "a/node.crt",
                "operator 'a', and one of role observer or client");
}

TEST_F(TlsDirectoryTest, AWrongRoleIsRefused) {
  const std::string path = MakeFolder("a", Role::kClient);
  ExpectRefusal(Opened(path, Role::kCoordinator), absl::StatusCode::kFailedPrecondition, "a/node.crt", "client 'a'");
}

TEST_F(TlsDirectoryTest, AWrongKeyIsRefused) {
  const std::string path = MakeFolder("a", Role::kClient);
  WriteFile(path + "/node.key", NewKey());
  ExpectRefusal(Opened(path, Role::kClient), absl::StatusCode::kFailedPrecondition, "a/node.key", "is not that of");
}

TEST_F(TlsDirectoryTest, AnotherAuthorityIsRefused) {
  const std::string path = MakeFolder("a", Role::kClient);
  WriteFile(path + "/ca.crt", NewAuthority("other")->certificate());  // of the same name
  ExpectRefusal(Opened(path, Role::kClient), absl::StatusCode::kFailedPrecondition, "a/node.crt",
                "take both from the same authority");
}

TEST_F(TlsDirectoryTest, OnlyWithinItsTime) {
  const std::string path = MakeFolder("a", Role::kClient);
  const absl::Time issued = Now(), end = issued + kYear;
  const auto at = [&](absl::Time now) { return OpenTlsDirectory(path, {Role::kClient}, now).status(); };
  EXPECT_TRUE(at(issued - absl::Minutes(5)).ok());
  EXPECT_TRUE(at(end - absl::Seconds(1)).ok());
  ExpectRefusal(at(issued - absl::Minutes(5) - absl::Seconds(1)), absl::StatusCode::kFailedPrecondition, "a/node.crt",
                "check this machine's clock");
  ExpectRefusal(at(end + absl::Seconds(1)), absl::StatusCode::kFailedPrecondition, "a/node.crt", "has expired");
  // By this machine's clock it is long over; who wants to know only whose it is may still ask.
  ExpectRefusal(at(absl::Now()), absl::StatusCode::kFailedPrecondition, "a/node.crt", "has expired");
  EXPECT_TRUE(ReadTlsDirectory(path, {Role::kClient}).ok());
}

TEST_F(TlsDirectoryTest, APurposeThatIsNotTheRolesIsRefused) {
  struct Lack {
    Role role;
    std::string purpose;  // the only one
  };
  int folders = 0;
  for (const Lack& lack : {Lack{Role::kCoordinator, "clientAuth"}, Lack{Role::kRelay, "clientAuth"},
                           Lack{Role::kRelay, "serverAuth"}, Lack{Role::kClient, "serverAuth"}}) {
    const std::string name = absl::StrCat("a", folders++), path = MakeFolder(name, lack.role);
    WriteFile(PathOf("ext"), absl::StrCat("extendedKeyUsage=", lack.purpose,
                                          "\nsubjectAltName=URI:", ToUri({lack.role, name}), ",DNS:a.example\n"));
    WriteFile(PathOf("r.pem"), NewRequest(lack.role, name, ReadFile(path + "/node.key")));
    const CommandResult made =
        Shell(absl::StrCat("openssl x509 -req -in ", PathOf("r.pem"), " -CA ", path, "/ca.crt -CAkey ",
                           PathOf("pki/ca.key"), " -days 1 -extfile ", PathOf("ext"), " -out ", path, "/node.crt"));
    ASSERT_EQ(made.code, 0) << made.output;
    const auto facts = ReadCertificate(ReadFile(path + "/node.crt"));
    ASSERT_TRUE(facts.ok()) << facts.status();
    ExpectRefusal(OpenTlsDirectory(path, {lack.role}, facts->not_before).status(),
                  absl::StatusCode::kFailedPrecondition, name + "/node.crt",
                  absl::StrCat("may not be used by a ", RoleName(lack.role)));
  }
}

TEST_F(TlsDirectoryTest, MissingAndDamagedFilesAreNamed) {
  for (const std::string name : {"ca.crt", "node.crt", "node.key"}) {
    const std::string path = MakeFolder("of-" + name, Role::kClient), file = absl::StrCat(path, "/", name);
    const std::string good = ReadFile(file);
    WriteFile(file, good.substr(0, good.size() / 2));
    ExpectRefusal(Opened(path, Role::kClient), absl::StatusCode::kInvalidArgument, file, "");
    WriteFile(file, good + std::string(kMaxPemBytes, '\n'));
    ExpectRefusal(Opened(path, Role::kClient), absl::StatusCode::kInvalidArgument, file, "");
    std::filesystem::remove(file);
    ExpectRefusal(Opened(path, Role::kClient), absl::StatusCode::kNotFound, file, "tersectl pki");
  }
}

TEST_F(TlsDirectoryTest, TwoAuthoritiesAreRefused) {
  const std::string path = MakeFolder("a", Role::kClient);
  WriteFile(path + "/ca.crt", authority_->certificate() + NewAuthority("other")->certificate());
  ExpectRefusal(Opened(path, Role::kClient), absl::StatusCode::kInvalidArgument, "a/ca.crt", "more than one");
}

TEST_F(TlsDirectoryTest, RevocationsAreThoseOfTheAuthority) {
  const std::string path = MakeFolder("a", Role::kCoordinator);
  ExpectRefusal(ReadRevocations(path).status(), absl::StatusCode::kNotFound, "a/crl.pem", "copy it from");
  const std::string serial = SerialOf(Issue(*authority_, Role::kClient, "b"));
  ASSERT_TRUE(authority_->Revoke("b").ok());
  WriteFile(path + "/crl.pem", *authority_->RevocationListPem());
  const auto list = ReadRevocations(path);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(list->serials, UnorderedElementsAre(serial));
  WriteFile(path + "/crl.pem", *NewAuthority("other")->RevocationListPem());
  ExpectRefusal(ReadRevocations(path).status(), absl::StatusCode::kPermissionDenied, "a/crl.pem", "not signed");
  WriteFile(path + "/crl.pem", "");
  ExpectRefusal(ReadRevocations(path).status(), absl::StatusCode::kInvalidArgument, "a/crl.pem", "");
  WriteFile(path + "/crl.pem", std::string(kMaxPemBytes + 1, '\n'));
  ExpectRefusal(ReadRevocations(path).status(), absl::StatusCode::kInvalidArgument, "a/crl.pem", "");
  WriteFile(path + "/crl.pem", *authority_->RevocationListPem());
  std::filesystem::remove(path + "/ca.crt");
  ExpectRefusal(ReadRevocations(path).status(), absl::StatusCode::kNotFound, "a/ca.crt", "");
}

TEST_F(TlsDirectoryTest, AnOldListIsStillTaken) {
  const std::string path = MakeFolder("a", Role::kCoordinator);
  const auto gone =
      Authority::Create(PathOf("gone"), "test", absl::Hours(1), &clock_);  // and so its list's next update
  ASSERT_TRUE(gone.ok()) << gone.status();
  ASSERT_LT((*gone)->not_after(), absl::Now());
  WriteFile(path + "/ca.crt", (*gone)->certificate());
  WriteFile(path + "/crl.pem", *(*gone)->RevocationListPem());
  const auto list = ReadRevocations(path);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->issued, Now());
}

TEST_F(TlsDirectoryTest, ALiveFolderCountsOnceItIsWhole) {
  const std::string path = MakeFolder("a", Role::kCoordinator), next = MakeFolder("b", Role::kCoordinator);
  WriteFile(path + "/crl.pem", *authority_->RevocationListPem());
  const auto live = LiveTlsDirectory::Open(path, Role::kCoordinator, &clock_);
  ASSERT_TRUE(live.ok()) << live.status();
  EXPECT_TRUE((*live)->Refresh().ok());
  EXPECT_EQ((*live)->generation(), 1);
  WriteFile(path + "/node.key", ReadFile(next + "/node.key"));
  ExpectRefusal((*live)->Refresh(), absl::StatusCode::kFailedPrecondition, "a/node.key", "is not that of");
  EXPECT_EQ((*live)->generation(), 1);
  EXPECT_EQ((*live)->Files().certificate.identity.name, "a");
  WriteFile(path + "/node.crt", ReadFile(next + "/node.crt"));
  EXPECT_TRUE((*live)->Refresh().ok());
  EXPECT_EQ((*live)->generation(), 2);
  EXPECT_EQ((*live)->Files().certificate.identity.name, "b");
  clock_.Advance(absl::ToDoubleSeconds(2 * kYear));
  ExpectRefusal((*live)->Refresh(), absl::StatusCode::kFailedPrecondition, "a/node.crt", "has expired");
}

TEST_F(TlsDirectoryTest, ALiveFolderStaysThatOfItsRole) {
  const std::string path = MakeFolder("hub", Role::kRelay), next = MakeFolder("main", Role::kCoordinator);
  WriteFile(path + "/crl.pem", *authority_->RevocationListPem());
  ExpectRefusal(LiveTlsDirectory::Open(path, Role::kCoordinator, &clock_).status(),
                absl::StatusCode::kFailedPrecondition, "hub/node.crt", "relay 'hub', and one of role coordinator");
  const auto live = LiveTlsDirectory::Open(path, Role::kRelay, &clock_);
  ASSERT_TRUE(live.ok()) << live.status();
  for (const char* name : {"/node.key", "/node.crt"}) WriteFile(path + name, ReadFile(next + name));
  ExpectRefusal((*live)->Refresh(), absl::StatusCode::kFailedPrecondition, "hub/node.crt",
                "coordinator 'main', and one of role relay");
  EXPECT_EQ((*live)->Files().certificate.identity.name, "hub");
}

}  // namespace
}  // namespace terse
