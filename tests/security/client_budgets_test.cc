#include "coordinator/rpc/client_budgets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/testing/fake_clock.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

class ClientBudgetsTest : public ::testing::Test {
 protected:
  static std::string TextOf(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    return std::string(status.message());
  }

  FakeClock clock_;
};

TEST_F(ClientBudgetsTest, CallsComeBackWithTime) {
  ClientBudgets budgets({/*calls_per_minute=*/6, /*calls_at_once=*/100, 0}, &clock_);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(budgets.BeginCall("a"), absl::OkStatus()) << i;
  EXPECT_THAT(TextOf(budgets.BeginCall("a")), HasSubstr("6 calls a minute is used up; there is more in 10 s"));
  EXPECT_EQ(budgets.BeginCall("b"), absl::OkStatus()) << "each has its own";
  clock_.Advance(9.9);
  EXPECT_THAT(TextOf(budgets.BeginCall("a")), HasSubstr("more in 1 s"));
  clock_.Advance(0.2);
  EXPECT_EQ(budgets.BeginCall("a"), absl::OkStatus());
  EXPECT_FALSE(budgets.BeginCall("a").ok());
  clock_.Advance(3600);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(budgets.BeginCall("a"), absl::OkStatus()) << i;
  EXPECT_FALSE(budgets.BeginCall("a").ok()) << "no more than a minute's";
}

TEST_F(ClientBudgetsTest, AClockThatIsSetBackGivesNothing) {
  ClientBudgets budgets({1, 100, 0}, &clock_);
  EXPECT_EQ(budgets.BeginCall("a"), absl::OkStatus());
  clock_.Advance(-1000);
  EXPECT_FALSE(budgets.BeginCall("a").ok());
  clock_.Advance(60);
  EXPECT_EQ(budgets.BeginCall("a"), absl::OkStatus()) << "and does not lock out for as long";
}

TEST_F(ClientBudgetsTest, OnlySoManyCallsAtOnce) {
  ClientBudgets budgets({100, 2, 0}, &clock_);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(budgets.BeginCall("a"), absl::OkStatus());
    EXPECT_EQ(budgets.Opened("a"), absl::OkStatus());
  }
  EXPECT_THAT(TextOf(budgets.BeginCall("a")), HasSubstr("has 2 calls open, of 2"));
  EXPECT_FALSE(budgets.Opened("a").ok()) << "of calls that began together";
  EXPECT_EQ(budgets.BeginCall("b"), absl::OkStatus());
  budgets.Ended("a");
  EXPECT_EQ(budgets.BeginCall("a"), absl::OkStatus());
}

TEST_F(ClientBudgetsTest, OfTheseOnlySoManySessions) {
  ClientBudgets budgets({100, 10, 0, /*sessions_at_once=*/2}, &clock_);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(budgets.BeginCall("a", /*is_session=*/true), absl::OkStatus());
    EXPECT_EQ(budgets.Opened("a", /*is_session=*/true), absl::OkStatus());
  }
  EXPECT_THAT(TextOf(budgets.BeginCall("a", /*is_session=*/true)), HasSubstr("has 2 sessions open, of 2"));
  EXPECT_FALSE(budgets.Opened("a", /*is_session=*/true).ok()) << "of calls that began together";
  EXPECT_EQ(budgets.BeginCall("a"), absl::OkStatus()) << "a file";
  budgets.Ended("a", /*is_session=*/true);
  EXPECT_EQ(budgets.BeginCall("a", /*is_session=*/true), absl::OkStatus());
}

TEST_F(ClientBudgetsTest, BytesAreWaitedFor) {
  ClientBudgets budgets({1000, 100, /*bytes_per_minute=*/6000}, &clock_);  // 100 a second
  EXPECT_EQ(budgets.Spend("a", 6000), absl::ZeroDuration());
  EXPECT_EQ(budgets.Spend("a", 200), absl::Seconds(2));
  EXPECT_EQ(budgets.Spend("a", 0), absl::Seconds(2)) << "asking costs nothing";
  EXPECT_EQ(budgets.Spend("b", 1), absl::ZeroDuration()) << "each has its own";
  clock_.Advance(1.5);
  EXPECT_EQ(budgets.Spend("a", 0), absl::Milliseconds(500));
  EXPECT_EQ(budgets.BeginCall("a"), absl::OkStatus());
  EXPECT_EQ(budgets.Spend("a", 100'000), absl::Seconds(1000.5)) << "what was too much is owed";
  clock_.Advance(100'000);
  EXPECT_EQ(budgets.Spend("a", 6000), absl::ZeroDuration());
  EXPECT_EQ(budgets.Spend("a", 1), absl::Milliseconds(10)) << "no more than a minute's";
}

TEST_F(ClientBudgetsTest, NoBudgetOfBytesIsNone) {
  ClientBudgets budgets({1, 1, 0}, &clock_);
  EXPECT_EQ(budgets.Spend("a", int64_t{1} << 60), absl::ZeroDuration());
  EXPECT_EQ(budgets.BeginCall("a"), absl::OkStatus());
}

TEST_F(ClientBudgetsTest, ForgetsWhoIsGone) {
  ClientBudgets budgets({10, 10, 1000}, &clock_);
  EXPECT_EQ(budgets.BeginCall("stays"), absl::OkStatus());
  EXPECT_EQ(budgets.Opened("stays"), absl::OkStatus());
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_EQ(budgets.BeginCall(absl::StrCat("c", i)), absl::OkStatus());
    clock_.Advance(1);
  }
  EXPECT_LE(budgets.size(), 1025);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(budgets.Opened("stays"), absl::OkStatus());
  EXPECT_THAT(TextOf(budgets.BeginCall("stays")), HasSubstr("10 calls open")) << "what is in use is kept";
}

}  // namespace
}  // namespace terse
