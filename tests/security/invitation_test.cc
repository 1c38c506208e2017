// Invitations, and what the authority makes of those who come by them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "security/invitation_book.h"
#include "tests/security/security_testing.h"

namespace terse {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class InvitationTest : public AuthorityTest {
 protected:
  InvitationTest() : authority_(NewAuthority()), book_(authority_.get()) {}

  std::string Invite(const InvitationTerms& terms = {}) {
    const auto invitation = book_.Invite("authority.example:7701", terms);
    EXPECT_TRUE(invitation.ok()) << invitation.status();
    return invitation.ok() ? invitation->secret : "";
  }

  absl::StatusOr<std::string> Come(const std::string& secret, const std::string& name, const std::string& key) {
    return book_.Enrol(secret, NewRequest(Role::kClient, name, key));
  }

  // The only invitation.
  InvitationRecord Record() {
    const auto records = book_.List();
    EXPECT_TRUE(records.ok()) << records.status();
    EXPECT_EQ(records->size(), 1u);
    return records->at(0);
  }

  std::unique_ptr<Authority> authority_;
  InvitationBook book_;
};

TEST_F(InvitationTest, TheFileIsReadAsItWasWritten) {
  const auto made = book_.Invite("authority.example:7701", {});
  ASSERT_TRUE(made.ok()) << made.status();
  const auto read = ReadInvitation(InvitationText(*made));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->address, "authority.example:7701");
  EXPECT_EQ(read->secret, made->secret);
  EXPECT_EQ(read->authority, authority_->certificate());
  EXPECT_EQ(InvitationText(*ReadInvitation(Golden("invitation.json"))), Golden("invitation.json"));
  EXPECT_EQ(ReadInvitation(Golden("invitation.json"))->address, "authority.example:7701");
}

TEST_F(InvitationTest, BadFilesAreRefusedWithTheirReason) {
  const std::string good = Golden("invitation.json");
  const auto changed = [&](const std::string& from, const std::string& to) {
    const std::string text = absl::StrReplaceAll(good, {{from, to}});
    EXPECT_NE(text, good) << from;
    return std::string(ReadInvitation(text).status().message());
  };
  EXPECT_THAT(std::string(ReadInvitation("").status().message()), HasSubstr("no JSON object"));
  EXPECT_THAT(std::string(ReadInvitation("[1]").status().message()), HasSubstr("no JSON object"));
  EXPECT_THAT(changed("terse-invitation-1", "terse-invitation-2"), HasSubstr("its format is not terse-invitation-1"));
  EXPECT_THAT(changed("example:7701", "example"), HasSubstr("HOST:PORT"));
  EXPECT_THAT(changed("\"secret\": \"", "\"secret\": \"A"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(changed("\"secret\"", "\"sekret\""), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(changed("BEGIN CERTIFICATE", "BEGIN NOTHING"), HasSubstr("its authority"));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadInvitation("{}").status()));
}

TEST_F(InvitationTest, OneClientComesByIt) {
  const std::string secret = Invite();
  const std::string key = NewKey();
  const auto certificate = Come(secret, "edge-1", key);
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(ReadCertificate(*certificate)->identity, (Identity{Role::kClient, "edge-1"}));
  EXPECT_EQ(ReadCertificate(*certificate)->not_after, Now() + kYear);
  EXPECT_TRUE(CheckKeyPair(*certificate, key).ok());
  const auto second = Come(secret, "edge-2", NewKey());
  EXPECT_TRUE(absl::IsPermissionDenied(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("used up: it was for 1 client;"));
  EXPECT_EQ(authority_->List()->size(), 1u);
}

TEST_F(InvitationTest, WhoAsksAgainGetsTheSame) {
  const std::string secret = Invite();
  const std::string key = NewKey();
  const auto certificate = Come(secret, "edge-1", key);
  clock_.Advance(48 * 3600);
  const auto again = Come(secret, "edge-1", key);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *certificate);
  EXPECT_EQ(authority_->List()->size(), 1u);
  EXPECT_EQ(Record().keys.size(), 1u);
  EXPECT_TRUE(absl::IsPermissionDenied(Come(secret, "edge-2", key).status())) << "one key, one name";
}

TEST_F(InvitationTest, AnOldInvitationRenewsNothing) {
  InvitationTerms terms;
  terms.lifetime = absl::Hours(1);
  const std::string secret = Invite(terms);
  const std::string key = NewKey();
  ASSERT_TRUE(Come(secret, "edge-1", key).ok());
  clock_.Advance(2 * 3600);
  EXPECT_TRUE(Come(secret, "edge-1", key).ok()) << "it is open still";
  clock_.Advance(24 * 3600);
  EXPECT_TRUE(absl::IsPermissionDenied(Come(secret, "edge-1", key).status()));
  EXPECT_EQ(authority_->List()->size(), 2u);
}

// A guest is written down first, so that a death in between gives nobody a second certificate.
TEST_F(InvitationTest, ADeathBeforeTheCertificateCostsNothing) {
  const std::string secret = Invite();
  const std::string key = NewKey();
  ASSERT_TRUE(Come(secret, "edge-1", key).ok());
  for (const auto& file : std::filesystem::directory_iterator(PathOf("pki/issued"))) std::filesystem::remove(file);
  EXPECT_TRUE(absl::IsPermissionDenied(Come(secret, "edge-2", NewKey()).status()));
  EXPECT_TRUE(Come(secret, "edge-1", key).ok());
}

TEST_F(InvitationTest, ItsTimeEnds) {
  InvitationTerms terms;
  terms.open = absl::Hours(2);
  terms.lifetime = absl::Hours(24);
  terms.guests = 2;
  const std::string secret = Invite(terms);
  clock_.Advance(2 * 3600 - 2);
  const auto certificate = Come(secret, "edge-1", NewKey());
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(ReadCertificate(*certificate)->not_after, Now() + absl::Hours(24));
  clock_.Advance(3);
  const auto late = Come(secret, "edge-2", NewKey());
  EXPECT_TRUE(absl::IsPermissionDenied(late.status()));
  EXPECT_THAT(std::string(late.status().message()), HasSubstr("time is over"));
}

TEST_F(InvitationTest, OnlyForTheNamesThatItSays) {
  InvitationTerms terms;
  terms.names = {"edge-*", "lab"};
  terms.guests = 9;
  const std::string secret = Invite(terms);
  EXPECT_TRUE(Come(secret, "edge-7", NewKey()).ok());
  EXPECT_TRUE(Come(secret, "lab", NewKey()).ok());
  const auto other = Come(secret, "lab-1", NewKey());
  EXPECT_TRUE(absl::IsPermissionDenied(other.status()));
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("for edge-*, lab and not for 'lab-1'"));
}

TEST_F(InvitationTest, OnlyForClients) {
  const std::string secret = Invite();
  for (const Role role : {Role::kOperator, Role::kObserver, Role::kCoordinator, Role::kRelay}) {
    const auto refused = book_.Enrol(secret, NewRequest(role, "x", NewKey()));
    EXPECT_TRUE(absl::IsPermissionDenied(refused.status())) << RoleName(role);
  }
  const auto hosts = MakeRequest({{Role::kClient, "x"}, {"coordinator.example"}}, NewKey());
  EXPECT_TRUE(absl::IsPermissionDenied(book_.Enrol(secret, *hosts).status()));
  EXPECT_EQ(Record().keys.size(), 0u) << "what was refused uses nothing up";
  EXPECT_EQ(authority_->List()->size(), 0u);
}

TEST_F(InvitationTest, NobodyTakesAnothersName) {
  InvitationTerms terms;
  terms.guests = 3;
  const std::string secret = Invite(terms);
  Issue(*authority_, Role::kClient, "berlin-1");
  const auto thief = Come(secret, "berlin-1", NewKey());
  EXPECT_TRUE(absl::IsAlreadyExists(thief.status()));
  EXPECT_EQ(Record().keys.size(), 0u);
  // A relay's name in runs is its own, as a client's is.
  Issue(*authority_, Role::kRelay, "hub");
  const auto impostor = Come(secret, "hub", NewKey());
  EXPECT_TRUE(absl::IsAlreadyExists(impostor.status())) << impostor.status();
  EXPECT_THAT(std::string(impostor.status().message()), HasSubstr("another device is relay 'hub'"));
  // An operator of that name is somebody else; and a name that was revoked, or has expired, is free.
  Issue(*authority_, Role::kOperator, "ada");
  EXPECT_TRUE(Come(secret, "ada", NewKey()).ok());
  ASSERT_TRUE(authority_->Revoke("berlin-1").ok());
  EXPECT_TRUE(Come(secret, "berlin-1", NewKey()).ok());
}

TEST_F(InvitationTest, ARevokedGuestDoesNotComeBackWithItsKey) {
  const std::string secret = Invite();
  const std::string key = NewKey();
  ASSERT_TRUE(Come(secret, "edge-1", key).ok());
  ASSERT_TRUE(authority_->Revoke("edge-1").ok());
  const auto again = Come(secret, "edge-1", key);
  EXPECT_TRUE(absl::IsFailedPrecondition(again.status())) << again.status();
}

TEST_F(InvitationTest, SecretsThatNobodyGaveOpenNothing) {
  const std::string secret = Invite();
  std::string close = secret;
  close.back() = close.back() == '0' ? '1' : '0';
  for (const std::string& other : {std::string(), close, secret.substr(1), std::string(1000, 'a'), Record().id}) {
    EXPECT_TRUE(absl::IsPermissionDenied(Come(other, "edge-1", NewKey()).status())) << other;
  }
  EXPECT_THAT(ReadFile(PathOf("pki/invitations/" + Record().id + ".json")), Not(HasSubstr(secret)));
  EXPECT_TRUE(absl::IsInvalidArgument(book_.Enrol(secret, "no request").status()));
}

TEST_F(InvitationTest, AWithdrawnOneIsUnknown) {
  const std::string secret = Invite();
  ASSERT_TRUE(book_.Withdraw(Record().id).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(Come(secret, "edge-1", NewKey()).status()));
  EXPECT_EQ(book_.List()->size(), 0u);
  EXPECT_TRUE(absl::IsNotFound(book_.Withdraw("../ca")));
}

TEST_F(InvitationTest, TermsThatCannotBeMeantAreRefused) {
  const auto code = [&](const std::string& address, const InvitationTerms& terms) {
    return book_.Invite(address, terms).status().code();
  };
  const InvitationTerms good;
  for (const std::string address : {"", "host", ":7701", "host:"}) {
    EXPECT_EQ(code(address, good), absl::StatusCode::kInvalidArgument) << address;
  }
  InvitationTerms none = good, many = good, closed = good, pattern = good, empty = good;
  none.guests = 0;
  many.guests = kMostGuests + 1;
  closed.open = absl::ZeroDuration();
  pattern.names = {"a b"};
  empty.names = {""};
  for (const InvitationTerms& terms : {none, many, closed, pattern, empty}) {
    EXPECT_EQ(code("host:1", terms), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(book_.List()->size(), 0u);
}

TEST_F(InvitationTest, ADamagedRecordIsNamed) {
  const std::string secret = Invite();
  const std::string path = PathOf("pki/invitations/" + Record().id + ".json");
  const std::string good = ReadFile(path);
  for (const std::string& text : {std::string(), good.substr(0, good.size() / 2), std::string("{\"format\": 2}"),
                                  absl::StrReplaceAll(good, {{"\"guests\": 1", "\"guests\": \"1\""}})}) {
    WriteFile(path, text);
    EXPECT_TRUE(absl::IsDataLoss(Come(secret, "edge-1", NewKey()).status())) << text;
    EXPECT_THAT(std::string(book_.List().status().message()), HasSubstr(path));
  }
}

TEST_F(InvitationTest, WhatWasReadIsKnownAndWhatChangedIsSeen) {
  KnownCertificates known;
  InvitationBook book(authority_.get(), &known);
  InvitationTerms terms;
  terms.guests = 5;
  const std::string secret = book.Invite("a:1", terms)->secret;
  for (const std::string name : {"a", "b", "c"}) {
    ASSERT_TRUE(book.Enrol(secret, NewRequest(Role::kClient, name, NewKey())).ok()) << name;
  }
  EXPECT_EQ(known.size(), 2u) << "each enrolment reads what the one before made";
  Issue(*authority_, Role::kClient, "d");
  EXPECT_TRUE(absl::IsAlreadyExists(book.Enrol(secret, NewRequest(Role::kClient, "d", NewKey())).status()));
  ASSERT_TRUE(authority_->Revoke("d").ok());
  EXPECT_TRUE(book.Enrol(secret, NewRequest(Role::kClient, "d", NewKey())).ok());
}

}  // namespace
}  // namespace terse
