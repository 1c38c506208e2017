// Tests the attacks of `terse-bench robust`, and the runs that its table is made of.
#include "bench/robust/robust_table.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Vector = std::vector<float>;

std::vector<Vector> Attacked(const std::string& name, std::vector<Vector> deltas) {
  std::vector<absl::Span<float>> spans;
  for (Vector& delta : deltas) spans.push_back(absl::MakeSpan(delta));
  for (const Attack& attack : Attacks()) {
    if (attack.name != name) continue;
    attack.change(spans);
    return deltas;
  }
  ADD_FAILURE() << "there is no attack " << name;
  return deltas;
}

TEST(Attack, ScalesAndFlips) {
  EXPECT_THAT(Attacked("none", {{1, -2}}), ElementsAre(Vector{1, -2}));
  EXPECT_THAT(Attacked("scaled", {{1, -2}, {0, 3}}), ElementsAre(Vector{100, -200}, Vector{0, 300}));
  EXPECT_THAT(Attacked("sign_flip", {{1, -2}}), ElementsAre(Vector{-10, 20}));
}

// Mean 2 and deviation 1 of 1, 2 and 3; mean 5 and none of equal ones.
TEST(Attack, ColludersSendTheSame) {
  EXPECT_THAT(Attacked("colluding", {{1, 5}, {3, 5}, {2, 5}}),
              ElementsAre(Vector{0.5f, 5}, Vector{0.5f, 5}, Vector{0.5f, 5}));
  EXPECT_THAT(Attacked("colluding", {{4, 5}}), ElementsAre(Vector{4, 5})) << "one has no deviation";
  EXPECT_THAT(Attacked("colluding", {}), ElementsAre());
}

TEST(Attack, HugeOnesSendTheLargestAndRandomOnesKeepTheirValues) {
  EXPECT_THAT(Attacked("huge", {{1, -2}}), ElementsAre(Vector{3e38f, 3e38f}));
  Vector many(100);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i);
  Vector shuffled = Attacked("random", {many})[0];
  EXPECT_NE(shuffled, many);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, many);
}

TEST(RobustTable, EveryCellIsARunOrSaysWhyNot) {
  RobustSettings settings;
  settings.rounds = 3;
  std::vector<std::string> keys;
  for (const Defence& defence : Defences()) {
    for (const Attack& attack : Attacks()) {
      const RobustCell cell = MakeRobustCell(defence, attack, 2, 2, settings);
      EXPECT_EQ(cell.key.find_first_of(" ,/"), std::string::npos) << cell.key;
      keys.push_back(cell.key);
      const auto file = ParseRunConfig(cell.run, "x");
      ASSERT_TRUE(file.ok()) << cell.key << file.status();
      EXPECT_EQ(ToCore(*file)->aggregation.byzantine, 2);
      EXPECT_EQ(ToCore(*file)->aggregation.trim, 0.1);
      const UpdatePolicy policy = ToCore(*file)->policy;
      EXPECT_EQ(policy.norm_ratio > 0, defence.name.find(", default") != std::string::npos);
      EXPECT_EQ(policy.is_strict(), defence.policy.find("_score") != std::string::npos ||
                                        defence.policy.find("cosine") != std::string::npos);
    }
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
  for (const Defence& defence : Defences()) {
    if (defence.name != "bulyan") continue;
    const auto file = ParseRunConfig(MakeRobustCell(defence, Attacks()[1], 6, 6, settings).run, "x");
    EXPECT_THAT(std::string(file.status().message()), HasSubstr("needs 27 updates in every round"));
  }
}

TEST(RobustTable, EveryShareIsAnotherNumberOfHostileClients) {
  EXPECT_THAT(HostileCounts(20, {10, 20, 30}).value(), ElementsAre(2, 4, 6));
  EXPECT_THAT(std::string(HostileCounts(5, {10, 20}).status().message()),
              HasSubstr("--percent 10 of 5 clients is nobody"));
  EXPECT_THAT(std::string(HostileCounts(5, {20, 30}).status().message()),
              HasSubstr("--percent 30 of 5 clients is 1, as is --percent 20"));
}

}  // namespace
}  // namespace terse
