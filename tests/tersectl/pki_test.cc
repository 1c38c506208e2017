// tersectl pki, from its arguments to the files that it leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "security/tls_directory.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TersectlPkiTest : public ::testing::Test {
 protected:
  std::string PathOf(const std::string& name) const { return absl::StrCat(directory_.path(), "/", name); }
  unsigned ModeOf(const std::string& name) const {
    struct stat info = {};
    EXPECT_EQ(stat(PathOf(name).c_str(), &info), 0) << name;
    return info.st_mode & 0777u;
  }
  bool Has(const std::string& name) const { return std::filesystem::exists(PathOf(name)); }

  CtlOutcome Pki(std::vector<std::string> arguments, const std::string& authority = "pki") const {
    arguments.insert(arguments.begin(), "pki");
    arguments.insert(arguments.end(), {"--pki", PathOf(authority)});
    return Invoke(arguments);
  }

  void Init(const std::string& authority = "pki") {
    const CtlOutcome made = Pki({"init"}, authority);
    ASSERT_EQ(made.code, kExitOk) << made.err;
  }

  json Issue(const std::string& role, const std::string& name, const std::string& out,
             const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"issue", role, name, "--out", PathOf(out), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CtlOutcome issued = Pki(arguments);
    EXPECT_EQ(issued.code, kExitOk) << issued.err;
    return issued.code == kExitOk ? json::parse(issued.out) : json();
  }

  TempDirectory directory_;
};

TEST_F(TersectlPkiTest, InitMakesAnAuthority) {
  const CtlOutcome made = Pki({"init", "--name", "lab", "--days", "30", "--json"});
  ASSERT_EQ(made.code, kExitOk) << made.err;
  EXPECT_EQ(json::parse(made.out)["directory"], PathOf("pki"));
  const absl::Time end = absl::FromUnixMicros(json::parse(made.out)["expires_us"].get<int64_t>());
  EXPECT_LT(absl::AbsDuration(end - absl::Now() - absl::Hours(24 * 30)), absl::Minutes(5));
  EXPECT_TRUE(Has("pki/ca.key"));
  const CtlOutcome again = Pki({"init"});
  EXPECT_EQ(again.code, kExitFailed);
  EXPECT_THAT(again.err, HasSubstr("holds an authority already"));
  EXPECT_THAT(Pki({"init"}, "second").out, HasSubstr("Next: tersectl pki issue coordinator"));
}

TEST_F(TersectlPkiTest, IssueMakesFoldersThatOpen) {
  Init();
  const json coordinator = Issue("coordinator", "main", "c", {"--host", "localhost", "--host", "127.0.0.1"});
  EXPECT_EQ(coordinator["hosts"], (std::vector<std::string>{"localhost", "127.0.0.1"}));
  EXPECT_EQ(coordinator["files"], (std::vector<std::string>{PathOf("c/ca.crt"), PathOf("c/crl.pem"),
                                                            PathOf("c/node.crt"), PathOf("c/node.key")}));
  EXPECT_TRUE(OpenTlsDirectory(PathOf("c"), {Role::kCoordinator}).ok());
  EXPECT_TRUE(ReadRevocations(PathOf("c")).ok());
  EXPECT_EQ(Issue("relay", "hub", "hub", {"--host", "localhost"})["role"], "relay");
  EXPECT_TRUE(OpenTlsDirectory(PathOf("hub"), {Role::kRelay}).ok());
  EXPECT_TRUE(ReadRevocations(PathOf("hub")).ok());
  for (const std::string role : {"client", "observer", "operator"}) {
    EXPECT_EQ(Issue(role, "a", role)["role"], role);
    const auto opened = OpenTlsDirectory(PathOf(role), {*ParseRole(role)});
    EXPECT_TRUE(opened.ok()) << opened.status();
    EXPECT_FALSE(Has(role + "/crl.pem"));
  }
  EXPECT_EQ(ModeOf("c/node.key"), 0600u);
}

TEST_F(TersectlPkiTest, KeysArePrivateWhateverWasLeftInTheirFolders) {
  for (const std::string name : {"pki/ca.key", "issued/node.key", "asked/node.key"}) {
    const std::string temporary = PathOf(name + ".tmp");
    std::filesystem::create_directory(std::filesystem::path(temporary).parent_path());
    std::ofstream(temporary) << "left";
    ASSERT_EQ(chmod(temporary.c_str(), 0666), 0);
  }
  Init();
  Issue("client", "a", "issued");
  ASSERT_EQ(Pki({"request", "client", "b", "--out", PathOf("asked")}).code, kExitOk);
  for (const std::string name : {"pki/ca.key", "issued/node.key", "asked/node.key"}) {
    EXPECT_EQ(ModeOf(name), 0600u) << name;
  }
}

TEST_F(TersectlPkiTest, IssueSaysTheNextStep) {
  Init();
  const CtlOutcome client = Pki({"issue", "client", "berlin-1", "--out", PathOf("b")});
  EXPECT_THAT(client.out, AllOf(StartsWith("client 'berlin-1', serial "), HasSubstr("terse-client --tls ")));
  const CtlOutcome relay = Pki({"issue", "relay", "hub", "--host", "localhost", "--out", PathOf("r")});
  EXPECT_THAT(relay.out,
              AllOf(StartsWith("relay 'hub', reached as localhost, serial "), HasSubstr("terse-relay --tls ")));
  const CtlOutcome person = Pki({"issue", "operator", "ada", "--out", PathOf("o")});
  EXPECT_THAT(person.out, HasSubstr("tersectl --tls "));
}

TEST_F(TersectlPkiTest, AKeyIsNotOverwritten) {
  Init();
  Issue("client", "a", "a");
  const std::string key = Slurp(PathOf("a/node.key")), certificate = Slurp(PathOf("a/node.crt"));
  for (const std::string command : {"issue", "request"}) {
    const CtlOutcome again = Pki({command, "client", "a", "--out", PathOf("a")});
    EXPECT_EQ(again.code, kExitFailed);
    EXPECT_THAT(again.err, HasSubstr("--renew"));
  }
  EXPECT_EQ(Slurp(PathOf("a/node.key")), key);
  EXPECT_EQ(Slurp(PathOf("a/node.crt")), certificate);
  EXPECT_EQ(Pki({"issue", "client", "a", "--out", PathOf("none"), "--renew"}).code, kExitFailed);
  EXPECT_FALSE(Has("none"));
}

TEST_F(TersectlPkiTest, RenewReplacesTheCertificateAlone) {
  Init();
  Issue("coordinator", "main", "c", {"--host", "a.example"});
  const std::string key = Slurp(PathOf("c/node.key")), certificate = Slurp(PathOf("c/node.crt"));
  const json renewed = Issue("coordinator", "main", "c", {"--renew"});
  EXPECT_EQ(renewed["files"], std::vector<std::string>{PathOf("c/node.crt")});
  EXPECT_EQ(renewed["hosts"], std::vector<std::string>{"a.example"});
  EXPECT_EQ(Slurp(PathOf("c/node.key")), key);
  EXPECT_NE(Slurp(PathOf("c/node.crt")), certificate);
  EXPECT_TRUE(OpenTlsDirectory(PathOf("c"), {Role::kCoordinator}).ok());
  EXPECT_EQ(Issue("coordinator", "main", "c", {"--renew", "--host", "b.example"})["hosts"],
            std::vector<std::string>{"b.example"});
}

TEST_F(TersectlPkiTest, AFolderOfSomebodyElseIsLeftAlone) {
  Init();
  Init("other");
  Issue("client", "a", "a");
  const std::string certificate = Slurp(PathOf("a/node.crt"));
  for (const std::string command : {"issue", "request"}) {
    EXPECT_THAT(Pki({command, "client", "b", "--out", PathOf("a"), "--renew"}).err, HasSubstr("is that of client 'a'"));
  }
  EXPECT_FALSE(Has("a/node.csr"));
  ASSERT_EQ(Pki({"request", "client", "b", "--out", PathOf("b")}).code, kExitOk);
  EXPECT_THAT(Pki({"sign", PathOf("b/node.csr"), "--out", PathOf("a")}).err, HasSubstr("is that of client 'a'"));
  EXPECT_THAT(Pki({"issue", "client", "a", "--out", PathOf("a"), "--renew"}, "other").err,
              HasSubstr("another authority"));
  EXPECT_EQ(Slurp(PathOf("a/node.crt")), certificate);
}

TEST_F(TersectlPkiTest, TheKeyOfARequestStaysWhereItIs) {
  Init();
  const CtlOutcome asked = Pki({"request", "client", "berlin-1", "--out", PathOf("device")}, "not here");
  ASSERT_EQ(asked.code, kExitOk) << asked.err;
  EXPECT_THAT(asked.out, AllOf(HasSubstr("and not the key"), HasSubstr("tersectl pki sign node.csr --out berlin-1")));
  const CtlOutcome signed_one = Pki({"sign", PathOf("device/node.csr"), "--days", "10", "--out", PathOf("signed")});
  ASSERT_EQ(signed_one.code, kExitOk) << signed_one.err;
  EXPECT_THAT(signed_one.out, StartsWith("client 'berlin-1', serial "));
  EXPECT_FALSE(Has("signed/node.key"));
  for (const char* name : {kAuthorityFile, kCertificateFile}) {
    std::filesystem::copy(PathOf(absl::StrCat("signed/", name)), PathOf(absl::StrCat("device/", name)));
  }
  const auto opened = OpenTlsDirectory(PathOf("device"), {Role::kClient});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_LT(opened->certificate.not_after, absl::Now() + absl::Hours(241));
}

TEST_F(TersectlPkiTest, ARequestIsRenewedWithItsKey) {
  Init();
  const std::vector<std::string> sign = {"sign", PathOf("d/node.csr"), "--out", PathOf("d")};
  ASSERT_EQ(Pki({"request", "client", "a", "--out", PathOf("d")}).code, kExitOk);
  ASSERT_EQ(Pki(sign).code, kExitOk);
  const std::string certificate = Slurp(PathOf("d/node.crt"));
  ASSERT_EQ(Pki({"request", "client", "a", "--out", PathOf("d"), "--renew"}).code, kExitOk);
  ASSERT_EQ(Pki(sign).code, kExitOk);
  EXPECT_NE(Slurp(PathOf("d/node.crt")), certificate);
  EXPECT_TRUE(OpenTlsDirectory(PathOf("d"), {Role::kClient}).ok());
}

TEST_F(TersectlPkiTest, ARenewedRequestKeepsTheHosts) {
  Init();
  Issue("coordinator", "main", "c", {"--host", "a.example", "--host", "127.0.0.1"});
  const std::vector<std::string> request = {"request", "coordinator", "main",  "--renew",
                                            "--out",   PathOf("c"),   "--json"};
  const CtlOutcome kept = Pki(request);
  ASSERT_EQ(kept.code, kExitOk) << kept.err;
  EXPECT_EQ(json::parse(kept.out)["hosts"], (std::vector<std::string>{"a.example", "127.0.0.1"}));
  EXPECT_EQ(ReadRequest(Slurp(PathOf("c/node.csr")))->hosts, (std::vector<std::string>{"a.example", "127.0.0.1"}));
  std::vector<std::string> other = request;
  other.insert(other.end(), {"--host", "b.example"});
  EXPECT_EQ(json::parse(Pki(other).out)["hosts"], std::vector<std::string>{"b.example"});
}

TEST_F(TersectlPkiTest, NobodyGetsARoleByAsking) {
  Init();
  for (const std::string role : {"operator", "observer", "relay", "coordinator"}) {
    const std::string folder = "r-" + role, request = PathOf(folder + "/node.csr");
    ASSERT_EQ(Pki({"request", role, "eve", "--host", "localhost", "--out", PathOf(folder)}).code, kExitOk);
    for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{{}, {"--role", "client"}}) {
      std::vector<std::string> arguments = {"sign", request, "--out", PathOf("signed-" + role)};
      arguments.insert(arguments.end(), more.begin(), more.end());
      const CtlOutcome refused = Pki(arguments);
      EXPECT_EQ(refused.code, kExitFailed);
      EXPECT_THAT(refused.err, HasSubstr(absl::StrCat("asks for a certificate of ", role, " 'eve'")));
    }
    const CtlOutcome misspelt = Pki({"sign", request, "--role", "Operator", "--out", PathOf("signed-" + role)});
    EXPECT_EQ(misspelt.code, kExitUsage);
    EXPECT_THAT(misspelt.err, HasSubstr("'Operator' is not allowed; did you mean 'operator'?"));
    EXPECT_FALSE(Has("signed-" + role));
    const CtlOutcome given = Pki({"sign", request, "--role", role, "--out", PathOf("signed-" + role)});
    EXPECT_EQ(given.code, kExitOk) << given.err;
    EXPECT_EQ(Has("signed-" + role + "/crl.pem"), role == "coordinator" || role == "relay");
  }
  EXPECT_EQ(json::parse(Pki({"list", "--json"}).out).size(), 4u);
}

TEST_F(TersectlPkiTest, SignRefusesWhatIsNotTheKeys) {
  Init();
  Issue("client", "a", "a");
  ASSERT_EQ(Pki({"request", "client", "a", "--out", PathOf("d")}).code, kExitOk);
  const CtlOutcome refused = Pki({"sign", PathOf("d/node.csr"), "--out", PathOf("a")});
  EXPECT_EQ(refused.code, kExitFailed);
  EXPECT_THAT(refused.err, HasSubstr("a/node.key"));
  EXPECT_EQ(json::parse(Pki({"list", "--json"}).out).size(), 1u);
  EXPECT_EQ(Pki({"sign", PathOf("none.csr"), "--out", PathOf("x")}).code, kExitFailed);
  EXPECT_THAT(Pki({"sign", PathOf("a/node.crt"), "--out", PathOf("x")}).err, HasSubstr("a/node.crt: "));
}

TEST_F(TersectlPkiTest, RevokeReachesTheCoordinatorsFolder) {
  Init();
  Issue("coordinator", "main", "c", {"--host", "localhost"});
  const std::string serial = Issue("client", "a", "a")["serial"];
  const CtlOutcome revoked = Pki({"revoke", "a", "--into", PathOf("c"), "--json"});
  ASSERT_EQ(revoked.code, kExitOk) << revoked.err;
  EXPECT_EQ(json::parse(revoked.out)["revoked"][0]["serial"], serial);
  EXPECT_EQ(json::parse(revoked.out)["files"], (std::vector<std::string>{PathOf("pki/crl.pem"), PathOf("c/crl.pem")}));
  EXPECT_TRUE(ReadRevocations(PathOf("c"))->serials.contains(serial));
  EXPECT_EQ(Slurp(PathOf("c/crl.pem")), Slurp(PathOf("pki/crl.pem")));
  // A list that did not arrive the first time.
  std::filesystem::remove(PathOf("c/crl.pem"));
  EXPECT_EQ(Pki({"revoke", "a", "--into", PathOf("c")}).code, kExitFailed);
  EXPECT_TRUE(ReadRevocations(PathOf("c"))->serials.contains(serial));
  EXPECT_THAT(Pki({"revoke", Issue("client", "b", "b")["serial"]}).out,
              AllOf(HasSubstr("revoked: client 'b'"), HasSubstr("every coordinator")));
}

TEST_F(TersectlPkiTest, ARevokedKeyIsNotRenewed) {
  Init();
  Issue("client", "a", "a");
  ASSERT_EQ(Pki({"revoke", "a"}).code, kExitOk);
  const std::string certificate = Slurp(PathOf("a/node.crt"));
  const CtlOutcome issued = Pki({"issue", "client", "a", "--renew", "--out", PathOf("a")});
  ASSERT_EQ(Pki({"request", "client", "a", "--renew", "--out", PathOf("a")}).code, kExitOk);
  const CtlOutcome signed_one = Pki({"sign", PathOf("a/node.csr"), "--out", PathOf("a")});
  for (const CtlOutcome& refused : {issued, signed_one}) {
    EXPECT_EQ(refused.code, kExitFailed);
    EXPECT_THAT(refused.err, HasSubstr("was revoked; make a new key in another folder"));
  }
  EXPECT_EQ(Slurp(PathOf("a/node.crt")), certificate);
  Issue("client", "a", "another");
}

TEST_F(TersectlPkiTest, RevokingACoordinatorSaysThatClientsDoNotKnow) {
  Init();
  Issue("coordinator", "main", "c", {"--host", "localhost"});
  Issue("client", "main", "a");
  const json revoked = json::parse(Pki({"revoke", "main", "--json"}).out)["revoked"];
  ASSERT_EQ(revoked.size(), 2u);
  for (const json& one : revoked) EXPECT_EQ(one["unenforced"], one["role"] == "coordinator");
  Issue("coordinator", "second", "d", {"--host", "localhost"});
  EXPECT_THAT(Pki({"revoke", "second"}).out,
              AllOf(HasSubstr("revoked: coordinator 'second'"), HasSubstr("clients read no revocation lists"),
                    HasSubstr("make a new authority")));
  // A coordinator knows, where it is a client, and its own clients do not.
  Issue("relay", "hub", "r", {"--host", "localhost"});
  EXPECT_THAT(Pki({"revoke", "hub", "--into", PathOf("d")}).out, HasSubstr("clients read no revocation lists"));
  EXPECT_EQ(ReadRevocations(PathOf("d"))->serials.size(), 4u);
  Issue("client", "b", "b");
  EXPECT_THAT(Pki({"revoke", "b"}).out, Not(HasSubstr("clients read no revocation lists")));
}

TEST_F(TersectlPkiTest, RevokeIntoAnotherFleetRevokesNothing) {
  Init();
  Issue("client", "a", "a");
  std::filesystem::create_directory(PathOf("empty"));
  for (const std::string folder : {"empty", "none"}) {
    EXPECT_THAT(Pki({"revoke", "a", "--into", PathOf(folder)}).err, HasSubstr("nothing was revoked"));
  }
  EXPECT_EQ(json::parse(Pki({"list", "--json"}).out)[0]["state"], "valid");
}

TEST_F(TersectlPkiTest, ListShowsStates) {
  Init();
  Issue("client", "gone", "g", {"--days", "3"});
  Issue("client", "here", "h", {"--days", "400"});
  ASSERT_EQ(Pki({"revoke", "gone"}).code, kExitOk);
  const CtlOutcome table = Pki({"list"});
  EXPECT_EQ(table.code, kExitOk) << table.err;
  EXPECT_THAT(table.out, AllOf(StartsWith("role    name  serial"), HasSubstr("  399 days  valid"),
                               HasSubstr("    2 days  revoked")));
  EXPECT_THAT(Pki({"list", "--revoked"}).out, AllOf(HasSubstr("gone"), Not(HasSubstr("here"))));
  const json all = json::parse(Pki({"list", "--json"}).out);
  ASSERT_EQ(all.size(), 2u);
  for (const json& one : all) EXPECT_EQ(one["revoked_us"].is_null(), one["name"] == "here");
}

TEST_F(TersectlPkiTest, WrongUsage) {
  EXPECT_EQ(Pki({}).code, kExitUsage);
  EXPECT_EQ(Pki({"issue", "admin", "a", "--out", PathOf("a")}).code, kExitUsage);
  EXPECT_EQ(Pki({"issue", "client", "a"}).code, kExitUsage);
  EXPECT_EQ(Pki({"init", "--days", "0"}).code, kExitUsage);
  const CtlOutcome none = Pki({"list"});
  EXPECT_EQ(none.code, kExitFailed);
  EXPECT_THAT(none.err, HasSubstr("tersectl pki init"));
  Init();
  EXPECT_THAT(Pki({"issue", "coordinator", "m", "--out", PathOf("m")}).err, HasSubstr("--host"));
  EXPECT_THAT(Pki({"issue", "relay", "m", "--out", PathOf("m")}).err,
              AllOf(HasSubstr("relay 'm' has no host"), HasSubstr("--host")));
  EXPECT_FALSE(Has("m"));
}

TEST_F(TersectlPkiTest, AMissingTlsFolderMattersOnlyWhereItIsNeeded) {
  Init();
  ASSERT_EQ(setenv("TERSE_TLS", PathOf("none").c_str(), 1), 0);
  const CtlOutcome local = Pki({"list"}), remote = Invoke({"status", "--admin", "localhost:7701"});
  ASSERT_EQ(unsetenv("TERSE_TLS"), 0);
  EXPECT_EQ(local.code, kExitOk) << local.err;
  EXPECT_EQ(remote.code, kExitFailed);
  EXPECT_THAT(remote.err, HasSubstr(absl::StrCat("there is no ", PathOf("none/"))));
}

TEST_F(TersectlPkiTest, RootLeavesAServiceItsFiles) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  constexpr uid_t kNobody = 65534;
  Init();
  ASSERT_EQ(mkdir(PathOf("c").c_str(), 0700), 0);
  ASSERT_EQ(chown(PathOf("c").c_str(), kNobody, kNobody), 0);
  ASSERT_EQ(chmod(directory_.path().c_str(), 0711), 0);
  Issue("coordinator", "main", "c", {"--host", "localhost"});
  Issue("coordinator", "main", "c", {"--renew"});
  Issue("client", "a", "a");
  ASSERT_EQ(Pki({"revoke", "a", "--into", PathOf("c")}).code, kExitOk);
  for (const auto& entry : std::filesystem::directory_iterator(PathOf("c"))) {
    struct stat info = {};
    ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, kNobody) << entry.path();
  }
}

TEST_F(TersectlPkiTest, InvitationsAreMadeListedAndWithdrawn) {
  Init();
  const auto invite = [this](std::vector<std::string> more) {
    more.insert(more.begin(), {"invite", "--address", "authority.example:7701"});
    return Pki(more);
  };
  const CtlOutcome made = invite({"--out", PathOf("fleet.invitation"), "--guests", "8", "--names", "edge-*"});
  ASSERT_EQ(made.code, kExitOk) << made.err;
  EXPECT_THAT(made.out, AllOf(StartsWith("invitation for 8 clients named edge-*, open for 24h"),
                              HasSubstr("Next: tersectl pki serve"), HasSubstr("terse-client --enrol")));
  EXPECT_EQ(ModeOf("fleet.invitation"), 0600u);
  EXPECT_EQ(json::parse(Slurp(PathOf("fleet.invitation")))["address"], "authority.example:7701");

  const CtlOutcome over = invite({"--out", PathOf("fleet.invitation")});
  EXPECT_EQ(over.code, kExitFailed);
  EXPECT_THAT(over.err, HasSubstr("is there already"));
  EXPECT_EQ(invite({"--out", PathOf("x"), "--guests", "0"}).code, kExitUsage);
  const json listed = json::parse(Pki({"invitations", "--json"}).out);
  ASSERT_EQ(listed.size(), 1u) << "what failed made none";
  EXPECT_EQ(listed[0]["guests"], 8);
  EXPECT_EQ(listed[0]["came"], 0);
  EXPECT_EQ(listed[0]["names"], (std::vector<std::string>{"edge-*"}));
  EXPECT_THAT(Pki({"invitations"}).out, HasSubstr("edge-*"));

  const std::string id = listed[0]["id"];
  EXPECT_THAT(Pki({"withdraw", id}).out, HasSubstr("nobody comes by invitation " + id));
  const CtlOutcome again = Pki({"withdraw", id});
  EXPECT_EQ(again.code, kExitFailed);
  EXPECT_THAT(again.err, HasSubstr("tersectl pki invitations"));
  EXPECT_EQ(json::parse(Pki({"invitations", "--json"}).out).size(), 0u);
}

TEST_F(TersectlPkiTest, EnrolmentSaysWhatItLacks) {
  Init();
  EXPECT_THAT(Pki({"serve"}).err, HasSubstr("--host"));
  ASSERT_EQ(Pki({"invite", "--address", "127.0.0.1:1", "--out", PathOf("i")}).code, kExitOk);
  const CtlOutcome away = Pki({"enrol", "edge-1", "--invitation", PathOf("i"), "--out", PathOf("edge")});
  EXPECT_EQ(away.code, kExitFailed);
  EXPECT_THAT(away.err, HasSubstr("tersectl pki serve"));
  EXPECT_FALSE(Has("edge/node.crt"));
  EXPECT_THAT(Pki({"enrol", "edge-1", "--invitation", PathOf("pki/ca.crt"), "--out", PathOf("edge")}).err,
              HasSubstr("it is no invitation"));
}

}  // namespace
}  // namespace terse
