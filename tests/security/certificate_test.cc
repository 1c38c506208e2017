// Certificates, requests and lists as they should be; OpenSSL's command line is asked for its opinion.
#include "security/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/security/security_testing.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class CertificateTest : public AuthorityTest {
 protected:
  // Returns the exit code of `openssl verify` for a certificate and a purpose, at the time of the test's clock.
  int Verify(const std::string& authority, const std::string& certificate, const std::string& purpose) {
    WriteFile(PathOf("a.pem"), authority);
    WriteFile(PathOf("c.pem"), certificate);
    return Shell(absl::StrCat("openssl verify -x509_strict -attime ", absl::ToUnixSeconds(Now()), " -CAfile ",
                              PathOf("a.pem"), " -purpose ", purpose, " ", PathOf("c.pem")))
        .code;
  }

  std::string Text(const std::string& certificate) {
    WriteFile(PathOf("c.pem"), certificate);
    return Shell(absl::StrCat("openssl x509 -noout -text -in ", PathOf("c.pem"))).output;
  }
};

TEST_F(CertificateTest, RequestRoundTrip) {
  const std::vector<std::string> hosts = {"fleet.example", "a-1.b", "192.0.2.7", "2001:db8::7"};
  const auto request = MakeRequest({{Role::kCoordinator, "main"}, hosts}, NewKey());
  ASSERT_TRUE(request.ok()) << request.status();
  const auto back = ReadRequest(*request);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE((back->identity == Identity{Role::kCoordinator, "main"}));
  EXPECT_EQ(back->hosts, hosts);
  WriteFile(PathOf("r.pem"), *request);
  EXPECT_EQ(Shell(absl::StrCat("openssl req -verify -noout -in ", PathOf("r.pem"))).code, 0);
}

TEST_F(CertificateTest, CertificateSaysWhatTheRequestAskedFor) {
  const auto authority = NewAuthority();
  const auto facts = ReadCertificate(Issue(*authority, Role::kCoordinator, "main"));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE((facts->identity == Identity{Role::kCoordinator, "main"}));
  EXPECT_THAT(facts->hosts, ElementsAre("localhost", "127.0.0.1"));
  EXPECT_EQ(facts->not_before, Now() - absl::Minutes(5));
  EXPECT_EQ(facts->not_after, Now() + kYear);
  EXPECT_LE(facts->serial.size(), 32u);
  EXPECT_GT(facts->serial.size(), 20u);
}

TEST_F(CertificateTest, SerialsDiffer) {
  const auto authority = NewAuthority();
  const std::string key = NewKey();
  EXPECT_NE(SerialOf(Issue(*authority, Role::kClient, "a", key)), SerialOf(Issue(*authority, Role::kClient, "a", key)));
}

TEST_F(CertificateTest, EveryRoleHasItsPurposes) {
  const auto authority = NewAuthority();
  const std::string ca = authority->certificate();
  const std::string coordinator = Issue(*authority, Role::kCoordinator, "x");
  EXPECT_EQ(Verify(ca, coordinator, "sslserver"), 0);
  EXPECT_NE(Verify(ca, coordinator, "sslclient"), 0);
  for (const Role role : {Role::kClient, Role::kObserver, Role::kOperator}) {
    const std::string certificate = Issue(*authority, role, "x");
    EXPECT_EQ(Verify(ca, certificate, "sslclient"), 0) << RoleName(role);
    EXPECT_NE(Verify(ca, certificate, "sslserver"), 0) << RoleName(role);
  }
  // A relay serves its own clients, and is a client itself.
  const std::string relay = Issue(*authority, Role::kRelay, "x");
  EXPECT_EQ(Verify(ca, relay, "sslserver"), 0);
  EXPECT_EQ(Verify(ca, relay, "sslclient"), 0);
  const auto other = NewAuthority("other");
  EXPECT_NE(Verify(other->certificate(), coordinator, "sslserver"), 0);
}

TEST_F(CertificateTest, ExtensionsAreAsDocumented) {
  const auto authority = NewAuthority();
  const std::string client = Text(Issue(*authority, Role::kClient, "berlin-1"));
  EXPECT_THAT(client, HasSubstr("Basic Constraints: critical\n                CA:FALSE"));
  EXPECT_THAT(client, HasSubstr("Key Usage: critical\n                Digital Signature\n"));
  EXPECT_THAT(client, HasSubstr("Extended Key Usage: \n                TLS Web Client Authentication\n"));
  EXPECT_THAT(client, HasSubstr("Subject Alternative Name: \n                URI:terse:client:berlin-1\n"));
  EXPECT_THAT(client, HasSubstr("Subject: O = Terse, CN = terse client berlin-1\n"));
  EXPECT_THAT(client, HasSubstr("ecdsa-with-SHA256"));
  EXPECT_THAT(client, HasSubstr("NIST CURVE: P-256"));
  EXPECT_THAT(client, HasSubstr("Authority Key Identifier"));
  EXPECT_THAT(Text(Issue(*authority, Role::kCoordinator, "m")), HasSubstr("TLS Web Server Authentication\n"));
  const std::string relay = Text(Issue(*authority, Role::kRelay, "hub"));
  EXPECT_THAT(relay, HasSubstr("TLS Web Server Authentication, TLS Web Client Authentication\n"));
  EXPECT_THAT(relay, HasSubstr("URI:terse:relay:hub, DNS:localhost, IP Address:127.0.0.1\n"));
  EXPECT_THAT(relay, HasSubstr("Subject: O = Terse, CN = terse relay hub\n"));
  const std::string own = Text(authority->certificate());
  EXPECT_THAT(own, HasSubstr("Basic Constraints: critical\n                CA:TRUE, pathlen:0"));
  EXPECT_THAT(own, HasSubstr("Key Usage: critical\n                Certificate Sign, CRL Sign\n"));
}

TEST_F(CertificateTest, LongNamesStayWhole) {
  const auto authority = NewAuthority();
  const std::string name(64, 'n');
  const std::string certificate = Issue(*authority, Role::kObserver, name);
  EXPECT_EQ(ReadCertificate(certificate)->identity.name, name);
  // X.509 allows 64 characters of a common name, and nobody relies on it.
  EXPECT_THAT(Text(certificate), HasSubstr("CN = terse observer " + name.substr(0, 49) + "\n"));
  EXPECT_EQ(Verify(authority->certificate(), certificate, "sslclient"), 0);
}

TEST_F(CertificateTest, KeysBelongToTheirCertificates) {
  const auto authority = NewAuthority();
  const std::string key = NewKey(), request = NewRequest(Role::kClient, "a", key);
  const std::string certificate = Issue(*authority, Role::kClient, "a", key);
  EXPECT_TRUE(CheckKeyPair(certificate, key).ok());
  EXPECT_TRUE(CheckRequestKey(request, key).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckKeyPair(certificate, NewKey())));
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckRequestKey(request, NewKey())));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckKeyPair("", key)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckKeyPair(certificate, "")));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckRequestKey("", key)));
}

TEST_F(CertificateTest, RevocationListNamesTheRevoked) {
  const auto authority = NewAuthority();
  const std::string certificate = Issue(*authority, Role::kClient, "a");
  Issue(*authority, Role::kClient, "b");
  const auto empty = ReadRevocationList(*authority->RevocationListPem(), authority->certificate());
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_THAT(empty->serials, IsEmpty());
  clock_.Advance(60);
  ASSERT_TRUE(authority->Revoke("a").ok());
  const auto list = ReadRevocationList(*authority->RevocationListPem(), authority->certificate());
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(list->serials, UnorderedElementsAre(SerialOf(certificate)));
  EXPECT_EQ(list->issued, Now());
  WriteFile(PathOf("l.pem"), *authority->RevocationListPem());
  WriteFile(PathOf("a.pem"), authority->certificate());
  const CommandResult verified =
      Shell(absl::StrCat("openssl crl -noout -in ", PathOf("l.pem"), " -CAfile ", PathOf("a.pem")));
  EXPECT_THAT(verified.output, HasSubstr("verify OK"));
}

TEST(CertificateGoldenTest, FilesOfOpensslAreRead) {
  const auto facts = ReadCertificate(Golden("pki_certificate.pem"));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE((facts->identity == Identity{Role::kCoordinator, "golden"}));
  EXPECT_EQ(facts->serial, "a1b2c3d4e5f60718293a4b5c6d7e8f9");
  EXPECT_THAT(facts->hosts, ElementsAre("fleet.example", "192.0.2.7", "2001:db8::7"));
  EXPECT_EQ(facts->not_after - facts->not_before, absl::Hours(24 * 36500));
  const auto request = ReadRequest(Golden("pki_request.pem"));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_TRUE(request->identity == facts->identity);
  EXPECT_EQ(request->hosts, facts->hosts);
  const auto list = ReadRevocationList(Golden("pki_crl.pem"), Golden("pki_authority.pem"));
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(list->serials, UnorderedElementsAre(facts->serial));
  EXPECT_EQ(list->issued, absl::FromUnixSeconds(1795401231));
}

TEST(CertificateGoldenTest, TheFirstOfSeveralCounts) {
  const std::string two = Golden("pki_certificate.pem") + Golden("pki_authority.pem");
  EXPECT_TRUE(ReadCertificate(two).ok());
  EXPECT_FALSE(ReadCertificate(Golden("pki_authority.pem") + Golden("pki_certificate.pem")).ok());
  EXPECT_TRUE(ReadCertificate("a remark\n\n" + Golden("pki_certificate.pem")).ok());
}

}  // namespace
}  // namespace terse
