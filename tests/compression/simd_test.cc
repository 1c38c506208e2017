#include "compression/simd.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace terse {
namespace {

class Simd : public testing::Test {
 protected:
  void TearDown() override { ASSERT_TRUE(UseSimdTarget("").ok()); }
};

TEST_F(Simd, ListsDifferentTargetsAndScalarLast) {
  const std::vector<std::string> targets = SimdTargets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(targets.back(), "scalar");
  EXPECT_EQ(std::set<std::string>(targets.begin(), targets.end()).size(), targets.size());
}

TEST_F(Simd, StartsWithTheFastest) { EXPECT_EQ(SimdTarget(), SimdTargets().front()); }

TEST_F(Simd, UsesEveryTargetAndGoesBack) {
  const std::vector<std::string> targets = SimdTargets();
  std::vector<std::string> there_and_back = targets;
  there_and_back.insert(there_and_back.end(), targets.rbegin(), targets.rend());
  for (const std::string& target : there_and_back) {
    ASSERT_TRUE(UseSimdTarget(target).ok());
    EXPECT_EQ(SimdTarget(), target);
    EXPECT_EQ(ScalarInUse(), target == "scalar");
    EXPECT_EQ(SimdTargets(), targets);
  }
  ASSERT_TRUE(UseSimdTarget("").ok());
  EXPECT_EQ(SimdTarget(), targets.front());
}

TEST_F(Simd, RefusesAnUnknownTargetAndNamesTheKnown) {
  const absl::Status status = UseSimdTarget("abacus");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("abacus"), std::string::npos);
  EXPECT_NE(status.message().find("scalar"), std::string::npos);
  EXPECT_EQ(SimdTarget(), SimdTargets().front());
}

}  // namespace
}  // namespace terse
