// Real processes over TLS, on the way that README.md describes: an authority, certificates, a coordinator, a client.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/e2e/fleet_processes.h"
#include "tests/testing/paths.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRun[] =
    "name = 'secure'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[codec]\nname = 'sbc'\ndensity = 0.02\n"
    "[rounds]\ncount = 20\nclients = 1\nevaluate_every = 1000000\n";

class Secure : public testing::Test {
 protected:
  void SetUp() override {
    WriteText(directory_ / "run.toml", kRun);
    Pki({"init"});
    Pki({"issue", "coordinator", "main", "--host", "127.0.0.1", "--out", directory_ / "main"});
    Pki({"issue", "client", "berlin-1", "--out", directory_ / "berlin-1"});
    Pki({"issue", "operator", "anna", "--out", directory_ / "anna"});
  }

  void Pki(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {Program("tersectl"), "pki"});
    arguments.insert(arguments.end(), {"--pki", directory_ / "pki"});
    int code = -1;
    const std::string output = RunCommand(arguments, &code);
    ASSERT_EQ(code, 0) << output;
  }

  void StartCoordinator(const std::string& admin) {
    const std::string ready = directory_ / "ready.json";
    std::vector<std::string> argv = {Program("grid-coordinator"),
                                     "--run-file",
                                     directory_ / "run.toml",
                                     "--state",
                                     directory_ / "state",
                                     "--listen",
                                     "127.0.0.1:0",
                                     "--tls",
                                     directory_ / "main",
                                     "--ready-file",
                                     ready,
                                     "--log-level",
                                     "debug"};
    if (!admin.empty()) argv.insert(argv.end(), {"--admin", admin});
    coordinator_ = std::make_unique<Process>(argv, directory_ / "coordinator.log");
    while (!std::filesystem::exists(ready)) {
      ASSERT_FALSE(coordinator_->Wait(absl::Milliseconds(20)).has_value()) << coordinator_->Output();
    }
    addresses_ = nlohmann::json::parse(std::ifstream(ready));
  }

  std::unique_ptr<Process> StartClient(const std::vector<std::string>& extra) {
    std::vector<std::string> argv = {
        Program("grid-client"), "--coordinator", addresses_.at("listen"), "--state", directory_ / "client",
        "--log-level",          "debug"};
    argv.insert(argv.end(), extra.begin(), extra.end());
    return std::make_unique<Process>(argv, directory_ / "client.log");
  }

  std::string Ctl(std::vector<std::string> arguments, int* code) {
    arguments.insert(arguments.begin(), {Program("tersectl"), "--admin", addresses_.at("admin")});
    return RunCommand(arguments, code);
  }

  ScratchDirectory directory_;
  std::unique_ptr<Process> coordinator_;
  nlohmann::json addresses_;
};

TEST_F(Secure, TheReadmesWay) {
  StartCoordinator(/*admin=*/"");
  const auto client = StartClient({"--tls", directory_ / "berlin-1"});
  EXPECT_EQ(client->Wait(kPatience), absl::optional<int>(0)) << client->Output();
  int code = -1;
  EXPECT_THAT(Ctl({"clients"}, &code), HasSubstr("berlin-1"));  // over the Unix socket
  EXPECT_EQ(code, 0);
  EXPECT_THAT(coordinator_->Output(),
              HasSubstr("debug tls [client=berlin-1]: 'berlin-1', client, calls /terse.v1.Fleet/"));
  Pki({"issue", "coordinator", "main", "--host", "127.0.0.1", "--renew", "--out", directory_ / "main"});
  const auto took = [&] {
    return absl::StrContains(coordinator_->Output(), "info tls: took the changed certificates");
  };
  EXPECT_TRUE(WaitUntil(took, kPatience)) << coordinator_->Output();
  Ctl({"stop", "--shutdown"}, &code);
  EXPECT_EQ(coordinator_->Wait(kPatience), absl::optional<int>(0)) << coordinator_->Output();
}

TEST_F(Secure, AClientEnrolsItself) {
  StartCoordinator(/*admin=*/"");
  const std::string pki = directory_ / "pki";
  Process desk({Program("tersectl"), "pki", "serve", "--host", "127.0.0.1", "--listen", "127.0.0.1:0", "--pki", pki},
               directory_ / "desk.log");
  std::smatch port;
  std::string said;
  const auto serves = [&] {
    said = desk.Output();
    return std::regex_search(said, port, std::regex("on port ([0-9]+) as"));
  };
  ASSERT_TRUE(WaitUntil(serves, kPatience)) << said;
  const std::string invitation = directory_ / "invitation", tls = directory_ / "edge-1";
  Pki({"invite", "--address", absl::StrCat("127.0.0.1:", port[1].str()), "--out", invitation});
  const auto client = StartClient({"--tls", tls, "--enrol", invitation, "--name", "edge-1"});
  EXPECT_EQ(client->Wait(kPatience), absl::optional<int>(0)) << client->Output();
  int code = -1;
  EXPECT_THAT(Ctl({"clients"}, &code), HasSubstr("edge-1"));
  desk.Signal(SIGTERM);
  EXPECT_EQ(desk.Wait(kPatience), absl::optional<int>(0)) << desk.Output();
  EXPECT_THAT(desk.Output(), HasSubstr("enrolled client 'edge-1' from ipv4:127.0.0.1"));
  const std::string secret = nlohmann::json::parse(std::ifstream(invitation)).at("secret");
  for (const std::string& log : {client->Output(), coordinator_->Output()}) {
    EXPECT_THAT(log, HasSubstr("[client=edge-1]: "));
    EXPECT_THAT(log, Not(AnyOf(HasSubstr(secret), HasSubstr("BEGIN")))) << "a secret, at level debug";
  }

  // Without an authority, and without --tls.
  const auto refused = StartClient({"--enrol", invitation, "--name", "edge-2"});
  EXPECT_EQ(refused->Wait(kPatience), absl::optional<int>(2)) << refused->Output();
  const auto missing =
      StartClient({"--tls", directory_ / "edge-2", "--enrol", directory_ / "none", "--name", "edge-2"});
  EXPECT_EQ(missing->Wait(kPatience), absl::optional<int>(1)) << missing->Output();
}

TEST_F(Secure, TheLogSaysWhoIsRefusedAndWhy) {
  StartCoordinator(/*admin=*/"");
  Pki({"revoke", "berlin-1", "--into", directory_ / "main"});
  const auto says = [&](const char* text) {
    return WaitUntil([&] { return std::regex_search(coordinator_->Output(), std::regex(text)); }, kPatience);
  };
  ASSERT_TRUE(says("info tls: took the changed revocation list of ")) << coordinator_->Output();
  const auto client = StartClient({"--tls", directory_ / "berlin-1"});
  EXPECT_EQ(client->Wait(kPatience), absl::optional<int>(1)) << client->Output();
  // Refusals that come between two looks are one line.
  EXPECT_TRUE(
      says("warn tls \\[client=berlin-1\\]: refused Session of client berlin-1 from 127.0.0.1( [0-9]+ times)?: "
           "PERMISSION_DENIED: the certificate "))
      << coordinator_->Output();
}

TEST_F(Secure, WithoutACertificateThereIsNoWayIn) {
  StartCoordinator("127.0.0.1:0");
  const auto client = StartClient({"--name", "berlin-1"});
  EXPECT_TRUE(WaitUntil([&] { return client->Output().find("trying again") != std::string::npos; }, kPatience));
  client->Signal(SIGTERM);
  EXPECT_EQ(client->Wait(kPatience), absl::optional<int>(0)) << client->Output();
  int code = -1;
  Ctl({"--timeout", "5", "status"}, &code);
  EXPECT_EQ(code, 3);
  EXPECT_THAT(Ctl({"--tls", directory_ / "anna", "status"}, &code), HasSubstr("secure"));
  EXPECT_EQ(code, 0);
  EXPECT_THAT(Ctl({"--tls", directory_ / "berlin-1", "status"}, &code), HasSubstr("is that of client 'berlin-1'"));
  EXPECT_EQ(code, 1);
}

TEST_F(Secure, TheNameIsTheCertificates) {
  StartCoordinator("");
  const auto client = StartClient({"--tls", directory_ / "berlin-1", "--name", "berlin-2"});
  EXPECT_EQ(client->Wait(kPatience), absl::optional<int>(2));
  EXPECT_THAT(client->Output(), HasSubstr("is for 'berlin-1'; leave --name away or correct it"));
}

TEST_F(Secure, NoProxySeesCleartext) {
  const std::string ready = directory_ / "ready.json";
  Process coordinator({Program("grid-coordinator"), "--run-file", directory_ / "run.toml", "--state",
                       directory_ / "state", "--listen", "127.0.0.1:0", "--ready-file", ready},
                      directory_ / "coordinator.log");
  ASSERT_TRUE(WaitUntil([&] { return std::filesystem::exists(ready); }, kPatience)) << coordinator.Output();
  const std::string listen = nlohmann::json::parse(std::ifstream(ready)).at("listen");
  Process client({"env", "http_proxy=http://127.0.0.1:1", Program("grid-client"), "--coordinator", listen, "--name",
                  "a", "--state", directory_ / "client"},
                 directory_ / "client.log");
  EXPECT_EQ(client.Wait(absl::Seconds(20)), absl::optional<int>(0)) << client.Output();
}

TEST_F(Secure, NothingIsSaidInCleartextOverANetwork) {
  int code = -1;
  const std::vector<std::string> client = {
      Program("grid-client"), "--coordinator", "192.0.2.1:7700", "--name", "a", "--state", directory_ / "client"};
  EXPECT_THAT(RunCommand(client, &code), HasSubstr("give --tls DIR"));
  EXPECT_EQ(code, 2);
  EXPECT_THAT(RunCommand({Program("tersectl"), "--admin", "192.0.2.1:7701", "status"}, &code),
              HasSubstr("give --tls DIR"));
  EXPECT_EQ(code, 1);
}

}  // namespace
}  // namespace terse
