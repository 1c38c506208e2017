// The dashboard beyond the loopback address: every path by every kind of credential, and what changes while it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/security/secure_fleet.h"

namespace terse {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::vector<std::string>& Paths() {
  static const auto* const paths = new std::vector<std::string>{"/",
                                                                "/main.js",
                                                                "/chart.js",
                                                                "/api/v1/runs",
                                                                "/api/v1/runs/x",
                                                                "/api/v1/runs/x/rounds",
                                                                "/api/v1/runs/x/clients",
                                                                "/metrics",
                                                                "/api/v1/me",
                                                                "/api/v1/runs/x/rounds.csv",
                                                                "/api/v1/runs/x/events"};
  return *paths;
}

class DashboardTls : public testing::Test {
 protected:
  void SetUp() override { fleet_.Serve(); }

  int port() const {
    const std::string& url = fleet_.addresses().http;
    return std::stoi(url.substr(url.rfind(':') + 1));
  }

  // A browser with the folder's certificate, or without one.
  std::unique_ptr<httplib::SSLClient> Browser(const std::string& folder) {
    auto browser = folder.empty() ? std::make_unique<httplib::SSLClient>("127.0.0.1", port())
                                  : std::make_unique<httplib::SSLClient>("127.0.0.1", port(), folder + "/node.crt",
                                                                         folder + "/node.key");
    browser->set_ca_cert_path((fleet_.coordinator_tls() + "/ca.crt").c_str());
    browser->enable_server_certificate_verification(true);
    return browser;
  }

  // The HTTP code, 0 when there was no connection.
  int Get(const std::string& folder, const std::string& path) {
    const httplib::Result reply = Browser(folder)->Get(path);
    return reply ? reply->status : 0;
  }

  SecureFleet fleet_;
};

TEST_F(DashboardTls, EveryPathByEveryCredential) {
  EXPECT_THAT(fleet_.addresses().http, StartsWith("https://"));
  const std::string expired = fleet_.Issue(Role::kOperator, "late", absl::Seconds(1));
  const std::string revoked = fleet_.Issue(Role::kOperator, "former");
  fleet_.Revoke("former");
  absl::SleepFor(absl::Seconds(2));
  struct Caller {
    std::string what, folder;
    std::set<int> codes;
  };
  const std::set<int> looks = {200, 404};
  const std::vector<Caller> callers = {
      {"no certificate", "", {0}},
      {"self-signed", fleet_.SelfSigned(Role::kOperator, "self"), {0}},
      {"another authority's", fleet_.IssueElsewhere(Role::kOperator, "stranger"), {0}},
      {"expired", expired, {0}},
      {"revoked", revoked, {403}},
      {"for nobody", fleet_.WithoutIdentity(), {0, 401}},
      {"coordinator", fleet_.Issue(Role::kCoordinator, "twin", absl::Hours(1), {"127.0.0.1"}), {0, 403}},
      {"client", fleet_.Issue(Role::kClient, "berlin"), {403}},
      {"relay", fleet_.Issue(Role::kRelay, "hub", absl::Hours(1), {"127.0.0.1"}), {403}},
      {"observer", fleet_.Issue(Role::kObserver, "eyes"), looks},
      {"operator", fleet_.Issue(Role::kOperator, "ops"), looks},
  };
  int requests = 0, allowed = 0;
  for (const Caller& caller : callers) {
    for (const std::string& path : Paths()) {
      const int code = Get(caller.folder, path);
      ++requests;
      allowed += looks.count(code);
      EXPECT_EQ(caller.codes.count(code), 1) << caller.what << " asked for " << path << ": " << code;
    }
  }
  std::cout << requests << " requests, " << allowed << " answered\n";
  EXPECT_EQ(allowed, 2 * Paths().size());
}

// An operator alone may read or do these things; the audit log has them, and those who were refused.
TEST_F(DashboardTls, CommandsAreAnOperators) {
  const std::string eyes = fleet_.Issue(Role::kObserver, "eyes"), ops = fleet_.Issue(Role::kOperator, "ops");
  const httplib::Headers own = {{"X-Terse-Request", "1"}};
  const auto post = [&](const std::string& folder, const std::string& path, const httplib::Headers& headers) {
    const httplib::Result reply = Browser(folder)->Post(path, headers, "{}", "application/json");
    return reply ? reply->status : 0;
  };
  for (const char* command : {"pause", "resume", "abort-round"}) {
    const std::string path = absl::StrCat("/api/v1/runs/x/", command);
    EXPECT_EQ(post(eyes, path, own), 403) << command;
    EXPECT_EQ(post(ops, path, own), 404) << command << ": there is no run";
    // A browser shows its certificate to pages of other sites too.
    EXPECT_EQ(post(ops, path, {}), 403) << command;
    EXPECT_EQ(post(ops, path, {{"X-Terse-Request", "1"}, {"Origin", "https://evil.example"}}), 403) << command;
    EXPECT_EQ(post(fleet_.Issue(Role::kClient, "berlin"), path, own), 403) << command;
  }
  for (const char* path : {"/api/v1/log", "/api/v1/audit"}) {
    EXPECT_EQ(Get(eyes, path), 403) << path;
    EXPECT_EQ(Get(ops, path), 200) << path;
  }
  EXPECT_THAT(Browser(eyes)->Get("/api/v1/me")->body, HasSubstr(R"("who":"observer eyes","operator":false)"));
  EXPECT_THAT(Browser(ops)->Get("/api/v1/me")->body, HasSubstr(R"("who":"operator ops","operator":true)"));
  const std::string audit = Browser(ops)->Get("/api/v1/audit")->body;
  EXPECT_THAT(audit, HasSubstr(R"("who":"operator ops")"));
  EXPECT_THAT(audit, HasSubstr(R"("address":"127.0.0.1","action":"Pause","run":"x")"));
  EXPECT_THAT(audit, HasSubstr("NOT_FOUND"));
  // Refusals are written about a second later.
  std::string refused;
  for (int i = 0; i < 100 && refused.find("observer eyes") == std::string::npos; ++i) {
    absl::SleepFor(absl::Milliseconds(200));
    refused = Browser(ops)->Get("/api/v1/audit")->body;
  }
  EXPECT_THAT(refused, HasSubstr(R"("who":"observer eyes")"));
  std::ifstream token(fleet_.Path("state/dashboard.token"));
  EXPECT_FALSE(token.good()) << "certificates are all that counts here";
}

TEST_F(DashboardTls, CleartextIsNotHeard) {
  const httplib::Result reply = httplib::Client("127.0.0.1", port()).Get("/");
  EXPECT_FALSE(reply);
}

TEST_F(DashboardTls, OnlyTls13) {
  auto browser = Browser(fleet_.Issue(Role::kOperator, "ops"));
  SSL_CTX_set_max_proto_version(browser->ssl_context(), TLS1_2_VERSION);
  EXPECT_FALSE(browser->Get("/"));
  SSL_CTX_set_max_proto_version(browser->ssl_context(), TLS1_3_VERSION);
  EXPECT_TRUE(browser->Get("/"));
}

// The connection stays open: its certificate was good when it was shown.
TEST_F(DashboardTls, ARevocationCountsAtOnce) {
  auto browser = Browser(fleet_.Issue(Role::kOperator, "leaver"));
  browser->set_keep_alive(true);
  ASSERT_EQ(browser->Get("/api/v1/runs")->status, 200);
  const auto socket = browser->socket();
  fleet_.Revoke("leaver");
  httplib::Result reply = browser->Get("/api/v1/runs");
  for (int i = 0; i < 100 && reply && reply->status == 200; ++i) {
    absl::SleepFor(absl::Milliseconds(200));
    reply = browser->Get("/api/v1/runs");
  }
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 403);
  EXPECT_THAT(reply->body, HasSubstr("is revoked"));
  EXPECT_EQ(browser->socket(), socket);
}

TEST_F(DashboardTls, TheCoordinatorsRenewedCertificateIsShown) {
  const std::string folder = fleet_.Issue(Role::kOperator, "ops");
  const auto serial = [&] {
    std::string text;
    const std::string file = fleet_.Path("shown.txt");
    const std::string command =
        absl::StrCat("openssl s_client -connect 127.0.0.1:", port(), " -cert ", folder, "/node.crt -key ", folder,
                     "/node.key </dev/null 2>/dev/null | openssl x509 -noout -serial > ", file);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream(file) >> text;
    return text;
  };
  const std::string before = serial();
  EXPECT_THAT(before, StartsWith("serial="));
  fleet_.RenewCoordinator();
  std::string after = serial();
  for (int i = 0; i < 100 && after == before; ++i) {
    absl::SleepFor(absl::Milliseconds(200));
    after = serial();
  }
  EXPECT_NE(after, before);
}

}  // namespace
}  // namespace terse
