// A coordinator and its clients on two hosts with a bad wire between them: thin, lossy, and with a middlebox that
// resets.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/network/network_fleet.h"
#include "tests/network/network_namespace.h"

namespace terse {
namespace {

class BadWire : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = TwoHosts::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    hosts_ = std::make_unique<TwoHosts>();
  }

  // The coordinator on one host, all clients on the other.
  void Start(const FleetShape& shape) {
    fleet_ = std::make_unique<NetworkFleet>(
        shape, nullptr, Place{hosts_->Launcher(TwoHosts::kServer), TwoHosts::AddressOf(TwoHosts::kServer) + ":0", {}});
    const Place clients = {hosts_->Launcher(TwoHosts::kClients), fleet_->processes().addresses().listen, {}};
    for (int i = 0; i < shape.clients; ++i) fleet_->StartClient(i, clients);
  }

  std::string Figures() const {
    return absl::StrCat(hosts_->Retransmissions(), " retransmissions, ", hosts_->Dropped(), " packets dropped");
  }

  std::unique_ptr<TwoHosts> hosts_;
  std::unique_ptr<NetworkFleet> fleet_;
};

TEST_F(BadWire, FivePercentLoss) {
  hosts_->DropPackets(0.05);
  Start({});
  ASSERT_TRUE(fleet_->Commits(60)) << fleet_->Logs();
  EXPECT_GT(hosts_->Dropped(), 0);
  EXPECT_GT(hosts_->Retransmissions(), 0);
  fleet_->FinishAndCheck(Figures());
}

TEST_F(BadWire, FivePercentLossOn256KilobitsWithoutCompression) {
  hosts_->LimitRate("256kbit");
  hosts_->DropPackets(0.05);
  FleetShape shape;
  shape.clients = 2;
  shape.codec = {"dense"};
  Start(shape);
  ASSERT_TRUE(fleet_->Commits(10)) << fleet_->Logs();
  EXPECT_GT(hosts_->Retransmissions(), 0);
  fleet_->FinishAndCheck(Figures());
}

// An end whose packets were answered in the other's name is told; the other waits on, until a keepalive ping.
TEST_F(BadWire, BurstsOfResets) {
  FleetShape shape;
  shape.keepalive_seconds = 1;
  Start(shape);
  int64_t rejected = 0;
  for (int burst = 0; burst < 10; ++burst) {
    const TwoHosts::Host host = burst % 2 == 0 ? TwoHosts::kServer : TwoHosts::kClients;
    ASSERT_TRUE(fleet_->Commits(5)) << "burst " << burst << "\n" << fleet_->Logs();
    hosts_->Reject(host);
    EXPECT_TRUE(WaitUntil([&] { return hosts_->Rejected(host) >= 3; }, kPatience));
    rejected += hosts_->Rejected(host);
    hosts_->Accept(host);
  }
  ASSERT_TRUE(fleet_->Commits(5)) << fleet_->Logs();
  fleet_->FinishAndCheck(absl::StrCat(rejected, " packets answered with RST"));
}

}  // namespace
}  // namespace terse
