// Tests which addresses are local, revocation lists that a gatekeeper does not take, and one that comes while a call
// begins.
#include "coordinator/rpc/gatekeeper.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "security/transport.h"
#include "tests/security/secure_fleet.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

TEST(Transport, KnowsWhatIsLocal) {
  for (const char* local : {"unix:/run/x.sock", "localhost:1", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1"}) {
    EXPECT_TRUE(IsLocalAddress(local)) << local;
  }
  for (const char* remote : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "localhost.example:1", "127.example:1", "12.7.0.1:1",
                             "::1:7700", "unix-abstract:x", "dns:///localhost:1", "ipv4:127.0.0.1:1,10.0.0.1:1"}) {
    EXPECT_FALSE(IsLocalAddress(remote)) << remote;
  }
}

TEST(Transport, SocketsOfAnyPath) {
  for (const char* path : {"/run/admin.sock", "state/admin.sock", "/my runs/100%/a+b#?\xc3\xa4.sock"}) {
    const absl::StatusOr<std::string> back = UnixSocketPath(UnixSocketAddress(path));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, path);
  }
  EXPECT_EQ(UnixSocketAddress("/my runs"), "unix:/my%20runs");
  for (const char* bad : {"/run/x", "unix:/100%", "unix:/%2", "unix:/%zz"})
    EXPECT_FALSE(UnixSocketPath(bad).ok()) << bad;
}

class GatekeeperTest : public testing::Test {
 protected:
  absl::Status Check(Gatekeeper& gatekeeper, const std::string& folder) {
    return gatekeeper.Check(Slurp(folder + "/node.crt"), "/terse.v1.Admin/GetStatus");
  }
  bool RefusesSoon(Gatekeeper& gatekeeper, const std::string& folder) {
    return Soon([&] { return !Check(gatekeeper, folder).ok(); });
  }

  SecureFleet fleet_;
  SystemClock clock_;
};

TEST_F(GatekeeperTest, AListThatIsDamagedOrGoneReadmitsNobody) {
  const std::string former = fleet_.Issue(Role::kOperator, "former");
  const auto gatekeeper = Gatekeeper::Open({fleet_.coordinator_tls(), &clock_});
  ASSERT_TRUE(gatekeeper.ok()) << gatekeeper.status();
  EXPECT_EQ(Check(**gatekeeper, former), absl::OkStatus());
  fleet_.Revoke("former");
  ASSERT_TRUE(RefusesSoon(**gatekeeper, former));
  const std::string list = fleet_.coordinator_tls() + "/crl.pem";
  const std::string good = Slurp(list);
  std::ofstream(list) << "damaged";
  absl::SleepFor(absl::Milliseconds(1500));
  EXPECT_EQ(Check(**gatekeeper, former).code(), absl::StatusCode::kPermissionDenied);
  std::filesystem::remove(list);
  absl::SleepFor(absl::Milliseconds(1500));
  EXPECT_EQ(Check(**gatekeeper, former).code(), absl::StatusCode::kPermissionDenied);
  // A new process knows nothing of what was, so it must not start with a damaged list.
  std::ofstream(list) << "damaged";
  EXPECT_FALSE(Gatekeeper::Open({fleet_.coordinator_tls(), &clock_}).ok());
  std::filesystem::remove(list);
  EXPECT_EQ(Gatekeeper::Open({fleet_.coordinator_tls(), &clock_}).status().code(), absl::StatusCode::kNotFound);
  std::ofstream(list) << good;
  EXPECT_TRUE(Gatekeeper::Open({fleet_.coordinator_tls(), &clock_}).ok());
}

TEST_F(GatekeeperTest, AnOlderListReadmitsNobody) {
  const std::string first = fleet_.Issue(Role::kOperator, "first"), second = fleet_.Issue(Role::kOperator, "second");
  const auto gatekeeper = Gatekeeper::Open({fleet_.coordinator_tls(), &clock_});
  ASSERT_TRUE(gatekeeper.ok()) << gatekeeper.status();
  fleet_.Revoke("first");
  const std::string older = Slurp(fleet_.coordinator_tls() + "/crl.pem");
  fleet_.Revoke("second");
  ASSERT_TRUE(RefusesSoon(**gatekeeper, second));
  std::ofstream(fleet_.coordinator_tls() + "/crl.pem") << older;
  absl::SleepFor(absl::Milliseconds(1500));
  EXPECT_EQ(Check(**gatekeeper, second).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Check(**gatekeeper, first).code(), absl::StatusCode::kPermissionDenied);
}

// Between the two the call is with gRPC; a revocation that comes then ends it, and is in the audit log.
TEST_F(GatekeeperTest, ACallThatWasGoodWhenItWasCheckedIsRefusedWhenItIsBooked) {
  const std::string former = fleet_.Issue(Role::kOperator, "former");
  std::vector<std::string> refused;
  const auto sink = [&](const CertificateFacts* peer, absl::string_view method, const std::string&,
                        const absl::Status& why) {
    refused.push_back(absl::StrCat(peer->identity.name, " ", method, " ", absl::StatusCodeToString(why.code())));
  };
  const auto gatekeeper = Gatekeeper::Open({fleet_.coordinator_tls(), &clock_, {}, sink});
  ASSERT_TRUE(gatekeeper.ok()) << gatekeeper.status();
  const absl::StatusOr<CertificateFacts> facts = ReadCertificate(Slurp(former + "/node.crt"));
  ASSERT_TRUE(facts.ok()) << facts.status();
  grpc::ServerContext before, after;
  EXPECT_EQ((*gatekeeper)->Book(&before, "/x/Y", *facts), absl::OkStatus());
  (*gatekeeper)->Strike(&before);
  EXPECT_TRUE(refused.empty());
  fleet_.Revoke("former");
  ASSERT_TRUE(RefusesSoon(**gatekeeper, former));
  refused.clear();
  EXPECT_EQ((*gatekeeper)->Book(&after, "/x/Y", *facts).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(refused, std::vector<std::string>({"former /x/Y PERMISSION_DENIED"}));
  (*gatekeeper)->Strike(&after);
}

}  // namespace
}  // namespace terse
