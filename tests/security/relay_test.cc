// A relay's certificate: it is a client's above, a coordinator's below, and alone may stand for other clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/rpc/grpc_link.h"
#include "coordinator/rpc/coordinator_thread.h"
#include "tests/security/secure_fleet.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/grid_learning.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RelayTls : public testing::Test {
 protected:
  std::string RunFile() {
    const std::string path = fleet_.Path("run.toml");
    std::ofstream(path) << "name = 'r'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[codec]\nname = "
                           "'sbc'\n[rounds]\ncount = 5\nclients = 3\n";
    return path;
  }
  // The TLS folder of a relay with that name.
  std::string IssueRelay(const std::string& name) {
    return fleet_.Issue(Role::kRelay, name, absl::Hours(1), {"127.0.0.1"});
  }
  TransportOptions RelayTransport(const std::string& folder) {
    TransportOptions transport = fleet_.Transport(folder);
    transport.relay = true;
    return transport;
  }
  // What a coordinator of its own in this process is started with.
  CoordinatorOptions ServeWith(const TransportOptions& transport) {
    CoordinatorOptions options;
    options.run_files = {RunFile()};
    options.state_directory = fleet_.Path("served");
    options.listen = "127.0.0.1:0";
    options.admin = "127.0.0.1:0";
    options.transport = transport;
    return options;
  }
  absl::StatusOr<std::unique_ptr<GrpcLink>> Connect(const std::string& address, const TransportOptions& transport) {
    return GrpcLink::Connect({address, transport, 60}, kPatience, &stop_);
  }
  // Checks in under a name, and returns the answer.
  static FromServer CheckInAs(GrpcLink* link, const std::string& name, bool relay) {
    CheckIn message;
    message.name = name;
    message.relay = relay;
    EXPECT_TRUE(link->Send(message).ok());
    const absl::StatusOr<FromServer> answer = link->Receive();
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : Refusal{};
  }
  // Sends an update that stands for ten clients, and returns the answer. Nobody asked for it.
  static FromServer SendForTen(GrpcLink* link, const Welcome& welcome) {
    Update update;
    update.round = 1'000'000;
    update.message = "no message of any codec";
    update.update_id = MakeUpdateId(welcome.lineage, update.round, welcome.client_index, {}, update.message);
    update.train_us = 1000;
    update.loss = 0.5f;
    update.cohort = {10, 1000};
    EXPECT_TRUE(link->Send(update).ok());
    const absl::StatusOr<FromServer> answer = link->Receive();
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : Refusal{};
  }
  bool WaitForAudit(const std::string& text) {
    const std::string folder = fleet_.Issue(Role::kOperator, "ops");
    return Soon([&] {
      const CtlOutcome audit = Invoke({"--admin", fleet_.addresses().admin, "--tls", folder, "audit", "--json"});
      return testing::Value(audit.out, HasSubstr(text));
    });
  }

  SecureFleet fleet_;
  const std::atomic<bool> stop_{false};
};

constexpr char kNoRelay[] = "'berlin' is client by its certificate, and only a relay may stand for other clients";

TEST_F(RelayTls, ServesAndCallsWithOneFolder) {
  const std::string folder = IssueRelay("hub");
  const CoordinatorThread below(ServeWith(RelayTransport(folder)), GridLearningFactory());
  ASSERT_FALSE(below.addresses().fleet.empty());
  const auto client = Connect(below.addresses().fleet, fleet_.Transport(fleet_.Issue(Role::kClient, "berlin")));
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE(std::holds_alternative<Welcome>(CheckInAs(client->get(), "berlin", /*relay=*/false)));
  const std::string ops = fleet_.Issue(Role::kOperator, "ops");
  EXPECT_EQ(Invoke({"--admin", below.addresses().admin, "--tls", ops, "status"}).code, 0);

  fleet_.Serve(RunFile());
  const auto above = Connect(fleet_.addresses().fleet, RelayTransport(folder));
  ASSERT_TRUE(above.ok()) << above.status();
  EXPECT_TRUE(std::holds_alternative<Welcome>(CheckInAs(above->get(), "hub", /*relay=*/true)));
  // It is a client's name, as others are.
  const auto liar = Connect(fleet_.addresses().fleet, RelayTransport(IssueRelay("hub-2")));
  ASSERT_TRUE(liar.ok()) << liar.status();
  const FromServer answer = CheckInAs(liar->get(), "hub", /*relay=*/true);
  ASSERT_TRUE(std::holds_alternative<Refusal>(answer));
  EXPECT_THAT(std::get<Refusal>(answer).reason, HasSubstr("the certificate is for 'hub-2', not for 'hub'"));
}

TEST_F(RelayTls, ItsFolderIsForRelaysAndOthersAreNot) {
  const std::string relay = IssueRelay("hub");
  const auto not_served = [this](const TransportOptions& transport) {
    CoordinatorThread refused(ServeWith(transport), GridLearningFactory());
    return refused.Stop();
  };
  absl::Status status = not_served(fleet_.Transport(relay));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("relay 'hub', and one of role coordinator is needed"));
  status = not_served(RelayTransport(fleet_.coordinator_tls()));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("one of role relay is needed"));

  fleet_.Serve();
  status = Connect(fleet_.addresses().fleet, fleet_.Transport(relay)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("relay 'hub', and one of role client is needed"));
  status = Connect(fleet_.addresses().fleet, RelayTransport(fleet_.Issue(Role::kClient, "berlin"))).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("client 'berlin', and one of role relay is needed"));
}

TEST_F(RelayTls, AClientDoesNotCheckInAsOne) {
  fleet_.Serve(RunFile());
  const auto link = Connect(fleet_.addresses().fleet, fleet_.Transport(fleet_.Issue(Role::kClient, "berlin")));
  ASSERT_TRUE(link.ok()) << link.status();
  const FromServer answer = CheckInAs(link->get(), "berlin", /*relay=*/true);
  ASSERT_TRUE(std::holds_alternative<Refusal>(answer));
  EXPECT_THAT(std::get<Refusal>(answer).reason, AllOf(HasSubstr(kNoRelay), HasSubstr("tersectl pki issue relay")));
  EXPECT_FALSE(std::get<Refusal>(answer).retry);
  EXPECT_TRUE(WaitForAudit(absl::StrCat("PERMISSION_DENIED: ", kNoRelay)));
}

TEST_F(RelayTls, AClientsUpdateStandsForNobodyElse) {
  fleet_.Serve(RunFile());
  const auto link = Connect(fleet_.addresses().fleet, fleet_.Transport(fleet_.Issue(Role::kClient, "berlin")));
  ASSERT_TRUE(link.ok()) << link.status();
  const FromServer welcome = CheckInAs(link->get(), "berlin", /*relay=*/false);
  ASSERT_TRUE(std::holds_alternative<Welcome>(welcome));
  const FromServer answer = SendForTen(link->get(), std::get<Welcome>(welcome));
  ASSERT_TRUE(std::holds_alternative<Refusal>(answer));
  EXPECT_THAT(std::get<Refusal>(answer).reason, HasSubstr(kNoRelay));
  EXPECT_FALSE(std::get<Refusal>(answer).retry);
  EXPECT_TRUE(WaitForAudit(absl::StrCat("PERMISSION_DENIED: ", kNoRelay)));
}

// The run, and not the edge, says what is wrong with it: it comes before Ready.
TEST_F(RelayTls, ARelaysUpdateReachesTheRun) {
  fleet_.Serve(RunFile());
  const auto link = Connect(fleet_.addresses().fleet, RelayTransport(IssueRelay("hub")));
  ASSERT_TRUE(link.ok()) << link.status();
  const FromServer welcome = CheckInAs(link->get(), "hub", /*relay=*/true);
  ASSERT_TRUE(std::holds_alternative<Welcome>(welcome));
  const FromServer answer = SendForTen(link->get(), std::get<Welcome>(welcome));
  ASSERT_TRUE(std::holds_alternative<Refusal>(answer));
  EXPECT_EQ(std::get<Refusal>(answer).reason, "an update follows Ready");
}

TEST_F(RelayTls, MayCheckInAsAClient) {
  fleet_.Serve(RunFile());
  const auto link = Connect(fleet_.addresses().fleet, RelayTransport(IssueRelay("hub")));
  ASSERT_TRUE(link.ok()) << link.status();
  EXPECT_TRUE(std::holds_alternative<Welcome>(CheckInAs(link->get(), "hub", /*relay=*/false)));
}

TEST_F(RelayTls, WithoutCertificatesEverybodyIsBelieved) {
  const CoordinatorThread coordinator(ServeWith({}), GridLearningFactory());
  ASSERT_FALSE(coordinator.addresses().fleet.empty());
  const auto link = Connect(coordinator.addresses().fleet, {});
  ASSERT_TRUE(link.ok()) << link.status();
  EXPECT_TRUE(std::holds_alternative<Welcome>(CheckInAs(link->get(), "anybody", /*relay=*/true)));
}

TEST_F(RelayTls, HasTheBudgetOfAClient) {
  fleet_.Serve(RunFile(), {/*calls_per_minute=*/2, /*calls_at_once=*/100, 0});
  const TransportOptions transport = RelayTransport(IssueRelay("hub"));
  absl::Status end;
  for (int i = 0; i < 3; ++i) {
    const auto link = Connect(fleet_.addresses().fleet, transport);
    ASSERT_TRUE(link.ok()) << link.status();
    CheckIn message;
    message.name = "hub";
    (*link)->Send(message).IgnoreError();
    end = (*link)->Receive().status();
    EXPECT_EQ(end.ok(), i < 2) << end;
  }
  EXPECT_THAT(std::string(end.message()), HasSubstr("budget of 2 calls a minute is used up"));
}

TEST_F(RelayTls, WhenRevokedIsNoClientAnyMore) {
  fleet_.Serve(RunFile());
  const auto link = Connect(fleet_.addresses().fleet, RelayTransport(IssueRelay("hub")));
  ASSERT_TRUE(link.ok()) << link.status();
  EXPECT_TRUE(std::holds_alternative<Welcome>(CheckInAs(link->get(), "hub", /*relay=*/true)));
  fleet_.Revoke("hub");
  const absl::Status end = (*link)->Receive().status();
  EXPECT_TRUE(absl::IsPermissionDenied(end) || absl::IsUnavailable(end)) << end;
}

}  // namespace
}  // namespace terse
