#include "net/rate_limit.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/testing/fake_clock.h"

namespace terse {
namespace {

class RateLimitTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  RateLimit limit_{{/*per_minute=*/6, /*at_once=*/3}, &clock_};
};

TEST_F(RateLimitTest, GivesSomeAtOnceAndThenAtItsRate) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limit_.Take("a"), absl::ZeroDuration());
  EXPECT_EQ(limit_.Take("a"), absl::Seconds(10));
  EXPECT_EQ(limit_.Take("b"), absl::ZeroDuration()) << "another has its own";
  clock_.Advance(4);
  EXPECT_NEAR(absl::ToDoubleSeconds(limit_.Take("a")), 6, 1e-6) << "asking in vain costs nothing";
  clock_.Advance(6.001);
  EXPECT_EQ(limit_.Take("a"), absl::ZeroDuration());
  EXPECT_GT(limit_.Take("a"), absl::ZeroDuration());
  clock_.Advance(3600);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limit_.Take("a"), absl::ZeroDuration()) << "a pause saves up no more";
  EXPECT_GT(limit_.Take("a"), absl::ZeroDuration());
}

TEST_F(RateLimitTest, NewKeysAreNoWayAround) {
  for (size_t i = 0; i < RateLimit::kMostKeys; ++i) EXPECT_EQ(limit_.Take(absl::StrCat(i)), absl::ZeroDuration());
  int taken = 0;
  for (int i = 0; i < 100; ++i) taken += limit_.Take(absl::StrCat("new ", i)) == absl::ZeroDuration() ? 1 : 0;
  EXPECT_EQ(taken, 3) << "those for whom there is no room share a bucket";
  clock_.Advance(60);
  EXPECT_EQ(limit_.Take("new"), absl::ZeroDuration()) << "who has all tokens again is forgotten";
}

}  // namespace
}  // namespace terse
