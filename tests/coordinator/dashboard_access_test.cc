// Tests the rights at the dashboard without certificates, and their records in the audit log.
#include "coordinator/rpc/dashboard_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/testing/fake_clock.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr char kPause[] = "/terse.v1.Admin/Pause", kLook[] = "/terse.v1.Admin/ListRuns";

class DashboardAccessTest : public testing::Test {
 protected:
  void SetUp() override {
    audit_ = *AuditTrail::Open({directory_.path(), "", &clock_, nullptr});
    access_ = *DashboardAccess::Open(directory_.path(), audit_.get());
  }
  std::string Token() const {
    std::string token;
    std::ifstream(directory_.path() + "/" + kTokenFile) >> token;
    return token;
  }
  static HttpCaller Showing(const std::string& token) { return {"", token, "127.0.0.1"}; }

  TempDirectory directory_;
  FakeClock clock_;
  std::unique_ptr<AuditTrail> audit_;
  std::shared_ptr<const DashboardAccess> access_;
};

TEST_F(DashboardAccessTest, TheTokenIsTheOwnersAlone) {
  EXPECT_THAT(Token(), MatchesRegex("[0-9a-f]{64}"));
  struct stat facts = {};
  ASSERT_EQ(stat((directory_.path() + "/" + kTokenFile).c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600);
  const std::string before = Token();
  const auto again = *DashboardAccess::Open(directory_.path(), audit_.get());
  EXPECT_NE(Token(), before);
  EXPECT_FALSE(again->CheckCleartext(Showing(before), kPause).ok()) << "of an earlier start";
}

TEST_F(DashboardAccessTest, EverybodyLooksAndTheTokenActs) {
  EXPECT_TRUE(access_->CheckCleartext(Showing(""), kLook).ok());
  EXPECT_TRUE(access_->CheckCleartext(Showing("nonsense"), kLook).ok());
  EXPECT_TRUE(access_->CheckCleartext(Showing(Token()), kPause).ok());
  const std::string token = Token();
  for (const std::string& shown : {std::string(), token.substr(1), token + "0", std::string(64, '0')}) {
    for (const char* method : {kPause, "/terse.v1.Admin/Export", "/terse.v1.Admin/ListAudit", "/nobody/knows"}) {
      EXPECT_EQ(access_->CheckCleartext(Showing(shown), method).code(), absl::StatusCode::kUnauthenticated) << shown;
    }
  }
}

TEST_F(DashboardAccessTest, RefusalsAreInTheAuditLog) {
  ASSERT_FALSE(access_->CheckCleartext(Showing("guess"), kPause).ok());
  ASSERT_TRUE(access_->CheckCleartext(Showing(Token()), kPause).ok());
  audit_ = nullptr;
  audit_ = *AuditTrail::Open({directory_.path(), "", &clock_, nullptr});
  const std::vector<AuditRecord> records = *audit_->Newest(10);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].who, "cleartext");
  EXPECT_EQ(records[0].address, "127.0.0.1");
  EXPECT_EQ(records[0].action, "Pause");
  EXPECT_THAT(records[0].result, HasSubstr("UNAUTHENTICATED: the token is not the one in "));
  EXPECT_EQ(records[0].result.find(Token()), std::string::npos);
}

TEST_F(DashboardAccessTest, WhoAsks) {
  const Visitor stranger = access_->VisitorOf(Showing(""));
  EXPECT_FALSE(stranger.is_operator);
  EXPECT_EQ(stranger.caller.who, "cleartext");
  EXPECT_THAT(stranger.hint, HasSubstr("commands need the token in " + directory_.path() + "/dashboard.token"));
  const Visitor owner = access_->VisitorOf(Showing(Token()));
  EXPECT_TRUE(owner.is_operator);
  EXPECT_EQ(owner.caller.who, "token");
  EXPECT_EQ(owner.hint, "");
}

TEST_F(DashboardAccessTest, WithCertificatesThereIsNoToken) {
  const auto access = *DashboardAccess::Open("", audit_.get());
  EXPECT_FALSE(access->CheckCleartext(Showing(""), kPause).ok());
  EXPECT_FALSE(access->CheckCleartext(Showing(Token()), kPause).ok());
}

}  // namespace
}  // namespace terse
