// Files from elsewhere that are cut, forged or ask for too much.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>

#include <functional>
#include <string>
#include <vector>

#include "security/certificate.h"
#include "tests/security/security_testing.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

class BadInputTest : public AuthorityTest {
 protected:
  // Whatever is refused leaves nothing in the queue of errors that this thread shares with gRPC.
  ~BadInputTest() override { EXPECT_EQ(ERR_peek_error(), 0u); }

  // A request that the command line makes, with a key of `key` and these extensions.
  std::string RequestOf(const std::string& key, const std::string& extensions) {
    const CommandResult made = Shell(absl::StrCat("openssl req -new -newkey ", key, " -nodes -keyout ", PathOf("k.pem"),
                                                  " -subj /CN=x ", extensions, " -out ", PathOf("r.pem")));
    EXPECT_EQ(made.code, 0) << made.output;
    return ReadFile(PathOf("r.pem"));
  }

  // A certificate with these alternative names, signed by itself.
  std::string CertificateOf(const std::string& names) {
    const std::string extension = names.empty() ? "" : absl::StrCat(" -addext subjectAltName=", names);
    const CommandResult made =
        Shell(absl::StrCat("openssl req -x509 -newkey ", kP256, " -nodes -keyout ", PathOf("k.pem"), " -subj /CN=x",
                           extension, " -out ", PathOf("c.pem")));
    EXPECT_EQ(made.code, 0) << made.output;
    return ReadFile(PathOf("c.pem"));
  }

  static constexpr char kP256[] = "ec -pkeyopt ec_paramgen_curve:P-256";
  static constexpr char kGoodNames[] = "-addext subjectAltName=URI:terse:client:a";
};

void ExpectCutsAreRefused(const std::string& pem, const std::function<absl::Status(const std::string&)>& read) {
  EXPECT_TRUE(read(pem).ok()) << read(pem);
  // The line's end after the last dashes is not needed.
  for (size_t size = 0; size + 1 < pem.size(); ++size) {
    ASSERT_EQ(read(pem.substr(0, size)).code(), absl::StatusCode::kInvalidArgument) << size << " of " << pem.size();
  }
}

TEST_F(BadInputTest, EveryCutIsRefused) {
  ExpectCutsAreRefused(Golden("pki_certificate.pem"),
                       [](const std::string& pem) { return ReadCertificate(pem).status(); });
  ExpectCutsAreRefused(Golden("pki_request.pem"), [](const std::string& pem) { return ReadRequest(pem).status(); });
  const std::string authority = Golden("pki_authority.pem"), list = Golden("pki_crl.pem");
  ExpectCutsAreRefused(list, [&](const std::string& pem) { return ReadRevocationList(pem, authority).status(); });
  ExpectCutsAreRefused(authority, [&](const std::string& pem) { return ReadRevocationList(list, pem).status(); });
  const std::string key = NewKey(), request = NewRequest(Role::kClient, "a", key);
  ExpectCutsAreRefused(key, [&](const std::string& pem) { return CheckRequestKey(request, pem); });
  ExpectCutsAreRefused(key, [&](const std::string& pem) {
    return MakeRequest({{Role::kClient, "a"}, {}}, pem).status();
  });
}

TEST_F(BadInputTest, EveryChangedByteOfWhatIsSignedIsRefused) {
  const std::string request = DerOf(Golden("pki_request.pem")), list = DerOf(Golden("pki_crl.pem"));
  const std::string authority = Golden("pki_authority.pem");
  for (size_t at = 0; at < request.size(); ++at) {
    std::string changed = request;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    ASSERT_FALSE(ReadRequest(PemOf("CERTIFICATE REQUEST", changed)).ok()) << at;
  }
  for (size_t at = 0; at < list.size(); ++at) {
    std::string changed = list;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    ASSERT_FALSE(ReadRevocationList(PemOf("X509 CRL", changed), authority).ok()) << at;
  }
}

TEST_F(BadInputTest, AWrongSignatureIsNoPermission) {
  std::string request = DerOf(Golden("pki_request.pem"));
  request.back() = static_cast<char>(request.back() ^ 1);
  EXPECT_TRUE(absl::IsPermissionDenied(ReadRequest(PemOf("CERTIFICATE REQUEST", request)).status()));
}

TEST_F(BadInputTest, AForgedListIsRefused) {
  const auto ours = NewAuthority();
  const auto theirs = NewAuthority("other");  // of the same name
  Issue(*theirs, Role::kClient, "a");
  ASSERT_TRUE(theirs->Revoke("a").ok());
  const auto forged = ReadRevocationList(*theirs->RevocationListPem(), ours->certificate());
  EXPECT_TRUE(absl::IsPermissionDenied(forged.status())) << forged.status();
  const auto golden = ReadRevocationList(Golden("pki_crl.pem"), ours->certificate());
  EXPECT_TRUE(absl::IsPermissionDenied(golden.status())) << golden.status();
}

TEST_F(BadInputTest, AListOfAPartIsRefused) {
  const auto authority = NewAuthority();
  WriteFile(PathOf("index.txt"), "");
  WriteFile(PathOf("number"), "01\n");
  WriteFile(
      PathOf("ca.cnf"),
      absl::StrCat("[ca]\ndefault_ca = a\n[a]\ndatabase = ", PathOf("index.txt"), "\ncrlnumber = ", PathOf("number"),
                   "\ncertificate = ", PathOf("pki/ca.crt"), "\nprivate_key = ", PathOf("pki/ca.key"),
                   "\ndefault_md = sha256\ndefault_crl_days = 9\n[part]\nissuingDistributionPoint = critical,@i\n"
                   "[i]\nonlyuser = TRUE\n"));
  const std::string make = absl::StrCat("openssl ca -config ", PathOf("ca.cnf"), " -gencrl -out ", PathOf("l.pem"));
  ASSERT_EQ(Shell(make).code, 0) << Shell(make).output;
  EXPECT_TRUE(ReadRevocationList(ReadFile(PathOf("l.pem")), authority->certificate()).ok());
  ASSERT_EQ(Shell(make + " -crlexts part").code, 0);
  const auto part = ReadRevocationList(ReadFile(PathOf("l.pem")), authority->certificate());
  EXPECT_TRUE(absl::IsInvalidArgument(part.status())) << part.status();
}

TEST_F(BadInputTest, CertificatesHaveExactlyOneIdentity) {
  EXPECT_TRUE(ReadCertificate(CertificateOf("URI:terse:client:a")).ok());
  EXPECT_TRUE(ReadCertificate(CertificateOf("URI:terse:client:a,email:a@b.example")).ok());
  for (const std::string names :
       {"", "DNS:a.example", "URI:terse:client:a,URI:terse:operator:a", "URI:terse:client:a,URI:https://b.example",
        "URI:https://b.example", "URI:terse:root:a", "URI:terse:client:a,DNS:*.example",
        "URI:terse:client:a,DNS:a..b"}) {
    const auto facts = ReadCertificate(CertificateOf(names));
    EXPECT_TRUE(absl::IsInvalidArgument(facts.status())) << names << ": " << facts.status();
  }
}

TEST_F(BadInputTest, RequestsAskForNothingElse) {
  const auto good = ReadRequest(RequestOf(kP256, kGoodNames));
  EXPECT_TRUE(good.ok()) << good.status();
  for (const std::string extensions :
       {"", "-addext basicConstraints=critical,CA:TRUE", "-addext extendedKeyUsage=serverAuth",
        "-addext subjectAltName=URI:terse:client:a -addext basicConstraints=critical,CA:TRUE",
        "-addext subjectAltName=URI:terse:client:a,email:a@b.example", "-addext subjectAltName=DNS:a.example",
        "-addext subjectAltName=URI:terse:client:a,URI:terse:operator:a",
        "-addext subjectAltName=URI:terse:coordinator:a"}) {
    const auto request = ReadRequest(RequestOf(kP256, extensions));
    EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << extensions << ": " << request.status();
  }
}

TEST_F(BadInputTest, RequestsHaveNoOtherAttribute) {
  WriteFile(PathOf("req.cnf"),
            "[req]\nprompt = no\ndistinguished_name = d\nattributes = a\nreq_extensions = e\n[d]\nCN = x\n"
            "[a]\nchallengePassword = secret\n[e]\nsubjectAltName = URI:terse:client:a\n");
  // The command has no -subj, with which it would leave attributes out.
  const CommandResult made = Shell(absl::StrCat("openssl req -new -newkey ", kP256, " -nodes -keyout ", PathOf("k.pem"),
                                                " -config ", PathOf("req.cnf"), " -out ", PathOf("r.pem")));
  ASSERT_EQ(made.code, 0) << made.output;
  const std::string request = ReadFile(PathOf("r.pem"));
  ASSERT_THAT(Shell("openssl req -noout -text -in " + PathOf("r.pem")).output, HasSubstr("challengePassword"));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadRequest(request).status())) << ReadRequest(request).status();
}

TEST_F(BadInputTest, OtherKeysThanP256AreRefused) {
  for (const std::string key : {"rsa:2048", "ec -pkeyopt ec_paramgen_curve:P-384",
                                "ec -pkeyopt ec_paramgen_curve:P-256 -pkeyopt ec_param_enc:explicit", "ed25519"}) {
    const auto request = ReadRequest(RequestOf(key, kGoodNames));
    EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << key << ": " << request.status();
    const auto made = MakeRequest({{Role::kClient, "a"}, {}}, ReadFile(PathOf("k.pem")));
    EXPECT_TRUE(absl::IsInvalidArgument(made.status())) << key << ": " << made.status();
  }
  EXPECT_FALSE(ReadRequest(RequestOf(kP256, absl::StrCat(kGoodNames, " -sha1"))).ok());
}

TEST_F(BadInputTest, BadHostsAndNamesAreRefused) {
  const std::string key = NewKey();
  const auto with_host = [&](const std::string& host) {
    return MakeRequest({{Role::kCoordinator, "a"}, {host}}, key).status();
  };
  const std::string label(63, 'x');
  for (const std::string& good : {std::string("localhost"), std::string("a.b-c.d1"), std::string("1a"), label,
                                  std::string("10.1.2.3"), std::string("::1"), std::string("fe80::1")}) {
    EXPECT_TRUE(with_host(good).ok()) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("."), std::string("a."), std::string(".a"), std::string("a..b"), std::string("-a"),
        std::string("a-"), std::string("a_b"), std::string("*.a"), std::string("a b"), std::string("a:7700"),
        std::string("1.2.3"), std::string("1.2.3.4.5"), std::string("256.1.1.1"), std::string("[::1]"),
        std::string("127.0.0.1\0x", 11), std::string("a\0b", 3), label + "x", std::string("m\xc3\xbc")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(with_host(bad))) << bad;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(MakeRequest({{Role::kCoordinator, "a"}, {}}, key).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(MakeRequest({{Role::kClient, "a/b"}, {}}, key).status()));
  const std::vector<std::string> many(65, "a");
  EXPECT_TRUE(absl::IsInvalidArgument(MakeRequest({{Role::kCoordinator, "a"}, many}, key).status()));
  EXPECT_TRUE(MakeRequest({{Role::kCoordinator, "a"}, std::vector<std::string>(64, "a")}, key).ok());
}

TEST_F(BadInputTest, TooLargeFilesAreRefused) {
  const std::string certificate = Golden("pki_certificate.pem"), authority = Golden("pki_authority.pem");
  const std::string fits(kMaxPemBytes - certificate.size(), '\n');
  EXPECT_TRUE(ReadCertificate(certificate + fits).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ReadCertificate(certificate + fits + "\n").status()));
  const std::string much(kMaxPemBytes, '\n');
  EXPECT_TRUE(absl::IsInvalidArgument(ReadRequest(Golden("pki_request.pem") + much).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadRevocationList(Golden("pki_crl.pem") + much, authority).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadRevocationList(Golden("pki_crl.pem"), authority + much).status()));
}

TEST_F(BadInputTest, AKeyWithAPasswordIsRefusedWithoutAsking) {
  WriteFile(PathOf("k.pem"), NewKey());
  const CommandResult locked =
      Shell(absl::StrCat("openssl pkcs8 -topk8 -in ", PathOf("k.pem"), " -passout pass:secret"));
  ASSERT_THAT(locked.output, HasSubstr("BEGIN ENCRYPTED PRIVATE KEY"));
  const absl::Status status = MakeRequest({{Role::kClient, "a"}, {}}, locked.output).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("without a password"));
}

TEST_F(BadInputTest, OneKindIsNotAnother) {
  EXPECT_TRUE(absl::IsInvalidArgument(ReadCertificate(Golden("pki_request.pem")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadRequest(Golden("pki_certificate.pem")).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(ReadRevocationList(Golden("pki_certificate.pem"), Golden("pki_authority.pem")).status()));
}

}  // namespace
}  // namespace terse
