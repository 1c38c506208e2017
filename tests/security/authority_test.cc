#include "security/authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "tests/security/security_testing.h"

namespace terse {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Names(const std::vector<CertificateFacts>& facts) {
  std::vector<std::string> names;
  for (const CertificateFacts& one : facts) names.push_back(ToUri(one.identity));
  return names;
}

unsigned ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777u;
}

TEST_F(AuthorityTest, WhatItIssuedIsListedInOrder) {
  const auto authority = NewAuthority();
  const std::string first = Issue(*authority, Role::kClient, "z");
  clock_.Advance(1);
  const std::string second = Issue(*authority, Role::kClient, "a");
  clock_.Advance(1);
  const std::string third = Issue(*authority, Role::kCoordinator, "m");
  const auto list = authority->List();
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 3u);
  EXPECT_EQ((*list)[0].facts.serial, SerialOf(first));
  EXPECT_EQ((*list)[1].facts.serial, SerialOf(second));
  EXPECT_EQ((*list)[2].facts.serial, SerialOf(third));
  EXPECT_FALSE((*list)[0].revoked.has_value());
  EXPECT_EQ(ReadFile(PathOf("pki/issued/" + SerialOf(first) + ".crt")), first);
}

TEST_F(AuthorityTest, FilesArePrivate) {
  ASSERT_EQ(mkdir(PathOf("open").c_str(), 0755), 0);
  const auto authority = NewAuthority("open");
  Issue(*authority, Role::kClient, "a");
  EXPECT_EQ(ModeOf(PathOf("open")), 0700u);
  EXPECT_EQ(ModeOf(PathOf("open/issued")), 0700u);
  EXPECT_EQ(ModeOf(PathOf("open/ca.key")), 0600u);
}

TEST_F(AuthorityTest, RevokesByNameWhateverTheRole) {
  const auto authority = NewAuthority();
  Issue(*authority, Role::kClient, "a");
  clock_.Advance(1);
  Issue(*authority, Role::kOperator, "a");
  Issue(*authority, Role::kClient, "ab");
  const auto revoked = authority->Revoke("a");
  ASSERT_TRUE(revoked.ok()) << revoked.status();
  EXPECT_EQ(Names(*revoked), (std::vector<std::string>{"terse:client:a", "terse:operator:a"}));
  const auto list = authority->List();
  ASSERT_TRUE(list.ok()) << list.status();
  for (const IssuedCertificate& one : *list) {
    EXPECT_EQ(one.revoked.has_value(), one.facts.identity.name == "a");
    EXPECT_EQ(one.revoked.value_or(Now()), Now());
  }
  EXPECT_TRUE(absl::IsNotFound(authority->Revoke("a").status()));
  EXPECT_TRUE(absl::IsNotFound(authority->Revoke("nobody").status()));
  EXPECT_TRUE(absl::IsNotFound(authority->Revoke("").status()));
}

TEST_F(AuthorityTest, RevokesBySerialAsOpensslPrintsIt) {
  const auto authority = NewAuthority();
  const std::string kept = Issue(*authority, Role::kClient, "a"), gone = Issue(*authority, Role::kClient, "a");
  std::string printed = "00";
  const std::string serial = SerialOf(gone), even = serial.size() % 2 == 0 ? serial : "0" + serial;
  for (size_t at = 0; at < even.size(); at += 2) printed += ":" + absl::AsciiStrToUpper(even.substr(at, 2));
  const auto revoked = authority->Revoke(printed);
  ASSERT_TRUE(revoked.ok()) << revoked.status();
  ASSERT_EQ(revoked->size(), 1u);
  EXPECT_EQ((*revoked)[0].serial, serial);
  const auto list = ReadRevocationList(*authority->RevocationListPem(), authority->certificate());
  EXPECT_FALSE(list->serials.contains(SerialOf(kept)));
}

TEST_F(AuthorityTest, ExpiredCertificatesAreRevokedBySerialOnly) {
  const auto authority = NewAuthority();
  const std::string old = Issue(*authority, Role::kClient, "a", NewKey(), absl::Hours(1));
  clock_.Advance(7200);
  EXPECT_TRUE(absl::IsNotFound(authority->Revoke("a").status()));
  EXPECT_TRUE(authority->Revoke(SerialOf(old)).ok());
}

TEST_F(AuthorityTest, RevocationsOutliveTheProcess) {
  std::string first, second;
  {
    const auto authority = NewAuthority();
    first = SerialOf(Issue(*authority, Role::kClient, "a"));
    second = SerialOf(Issue(*authority, Role::kClient, "b"));
    ASSERT_TRUE(authority->Revoke("a").ok());
  }
  const absl::Time then = Now();
  clock_.Advance(3600);
  const auto authority = Authority::Open(PathOf("pki"), &clock_);
  ASSERT_TRUE(authority.ok()) << authority.status();
  ASSERT_TRUE((*authority)->Revoke("b").ok());
  const auto list = ReadRevocationList(ReadFile(PathOf("pki/crl.pem")), (*authority)->certificate());
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->serials.size(), 2u);
  EXPECT_TRUE(list->serials.contains(first) && list->serials.contains(second));
  const auto issued = (*authority)->List();
  ASSERT_TRUE(issued.ok()) << issued.status();
  for (const IssuedCertificate& one : *issued) EXPECT_EQ(*one.revoked, one.facts.serial == first ? then : Now());
  EXPECT_THAT(Shell("openssl crl -noout -crlnumber -in " + PathOf("pki/crl.pem")).output, HasSubstr("crlNumber=0x03"));
}

TEST_F(AuthorityTest, RenewalKeepsTheKeyAndLeavesTheOldOneValid) {
  const auto authority = NewAuthority();
  const std::string key = NewKey();
  const std::string old = Issue(*authority, Role::kClient, "a", key);
  clock_.Advance(3600);
  const std::string renewed = Issue(*authority, Role::kClient, "a", key);
  EXPECT_NE(SerialOf(old), SerialOf(renewed));
  EXPECT_EQ(ReadCertificate(renewed)->not_after, ReadCertificate(old)->not_after + absl::Hours(1));
  EXPECT_TRUE(CheckKeyPair(renewed, key).ok());
  EXPECT_EQ(authority->Revoke("a")->size(), 2u);
}

TEST_F(AuthorityTest, ARevokedKeyIsNotCertifiedAgain) {
  auto authority = NewAuthority();
  const std::string key = NewKey(), other = NewKey();
  const std::string gone = Issue(*authority, Role::kClient, "a", key);
  Issue(*authority, Role::kClient, "a", key);
  Issue(*authority, Role::kClient, "a", other);
  ASSERT_TRUE(authority->Revoke(SerialOf(gone)).ok());
  authority.reset();
  authority = *Authority::Open(PathOf("pki"), &clock_);
  for (const std::string& request : {NewRequest(Role::kClient, "a", key), NewRequest(Role::kObserver, "b", key)}) {
    const absl::Status refused = authority->Issue(request, kYear).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(SerialOf(gone) + " of client 'a'"));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("another folder"));
  }
  Issue(*authority, Role::kClient, "a", other);
  EXPECT_EQ(authority->List()->size(), 4u);
}

TEST_F(AuthorityTest, NothingOutlastsTheAuthority) {
  const auto authority = NewAuthority();
  const std::string request = NewRequest(Role::kClient, "a", NewKey());
  EXPECT_TRUE(absl::IsFailedPrecondition(authority->Issue(request, kLong + absl::Seconds(1)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(authority->Issue(request, absl::ZeroDuration()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(authority->Issue(request, -kYear).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(authority->Issue(request, absl::InfiniteDuration()).status()));
  EXPECT_THAT(*authority->List(), IsEmpty());
  const auto whole = authority->Issue(request, kLong);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(ReadCertificate(*whole)->not_after, authority->not_after());
  EXPECT_EQ(ReadCertificate(*whole)->not_before, Now() - absl::Minutes(5));
}

TEST_F(AuthorityTest, BadRequestsAreNotRecorded) {
  const auto authority = NewAuthority();
  EXPECT_TRUE(absl::IsInvalidArgument(authority->Issue("", kYear).status()));
  std::string forged = DerOf(NewRequest(Role::kClient, "a", NewKey()));
  forged.back() = static_cast<char>(forged.back() ^ 1);
  EXPECT_TRUE(absl::IsPermissionDenied(authority->Issue(PemOf("CERTIFICATE REQUEST", forged), kYear).status()));
  EXPECT_THAT(*authority->List(), IsEmpty());
}

TEST_F(AuthorityTest, OneProcessAtATime) {
  auto authority = NewAuthority();
  const absl::Status refused = Authority::Open(PathOf("pki"), &clock_, absl::Milliseconds(20)).status();
  EXPECT_EQ(refused,
            absl::FailedPreconditionError(absl::StrCat(
                PathOf("pki"), ": another command has been at work there for 20ms; try again, or end that one")));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const absl::Status there = Authority::Open(PathOf("pki"), nullptr, absl::ZeroDuration()).status();
    _exit(absl::IsFailedPrecondition(there) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  authority.reset();
  EXPECT_TRUE(Authority::Open(PathOf("pki"), &clock_).ok());
}

TEST_F(AuthorityTest, ACommandWaitsForAnother) {
  auto authority = NewAuthority();
  std::thread other([&] {
    absl::SleepFor(absl::Milliseconds(200));
    authority.reset();
  });
  const absl::Status opened = Authority::Open(PathOf("pki"), &clock_).status();
  EXPECT_EQ(opened, absl::OkStatus());
  other.join();
}

}  // namespace
}  // namespace terse
