#include "proto/run_config_aggregation.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/run_config_convert.h"
#include "tests/proto/least_run.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A run of 11 clients with Krum and a policy.
constexpr char kRobust[] =
    "name = 'r'\n"
    "[train]\nlocal_steps = 10\n"
    "[train.optimizer]\nlearning_rate = 0.5\n"
    "[codec]\nname = 'sbc'\ndownstream = 'dense'\n"
    "[rounds]\ncount = 3\nclients = 11\n"
    "[policy]\nnorm_bound = 2.5\nz_score = 3.5\ncosine = -0.25\n"
    "[aggregation]\nrule = 'multi_krum'\nbyzantine = 3\nabsent = 'skip'\ntrim = 0.25\nkeep = 4\n";

std::string RobustError(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kRobust, {{from, to}});
  EXPECT_NE(text, kRobust);
  const auto config = ParseRunConfig(text, "x.toml");
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << config.status() << text;
  return std::string(config.status().message());
}

TEST(RunConfigAggregation, CarriesEverySetting) {
  const auto config = ParseRunConfig(kRobust, "x.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  const RunConfig run = *ToCore(*config);
  EXPECT_EQ(run.aggregation.rule, "multi_krum");
  EXPECT_EQ(run.aggregation.absent, "skip");
  EXPECT_EQ(run.aggregation.trim, 0.25);
  EXPECT_EQ(run.aggregation.byzantine, 3);
  EXPECT_EQ(run.aggregation.keep, 4);
  EXPECT_EQ(run.policy.norm_bound, 2.5);
  EXPECT_EQ(run.policy.z_score, 3.5);
  EXPECT_EQ(run.policy.cosine, -0.25);
}

TEST(RunConfigAggregation, ARunWithoutThemImputesAndRefusesNothing) {
  const RunConfig run = *ToCore(Least());
  const AggregationSpec plain;
  EXPECT_EQ(run.aggregation.rule, "imputed_mean");
  EXPECT_EQ(run.aggregation.absent, plain.absent);
  EXPECT_EQ(run.aggregation.trim, plain.trim);
  EXPECT_EQ(run.aggregation.byzantine, plain.byzantine);
  EXPECT_EQ(run.aggregation.keep, plain.keep);
  EXPECT_FALSE(run.policy.is_strict());
  EXPECT_EQ(run.policy.norm_ratio, 8) << "on by default";
}

std::string RuleOf(absl::string_view from, absl::string_view to) {
  const auto config = ParseRunConfig(
      absl::StrReplaceAll(kRobust, {{"'multi_krum'", "'auto'"}, {"keep = 4\n", ""}, {from, to}}), "x.toml");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? ToCore(*config)->aggregation.rule : "";
}

TEST(RunConfigAggregation, AutoImputesWhereClientsKeepTheSmallElements) {
  for (const char* codec : {"sbc", "stc", "sbc_or_stc", "top_k", "sparseloco"}) {
    EXPECT_EQ(RuleOf("'sbc'", absl::StrCat("'", codec, "'")), "imputed_mean") << codec;
  }
  for (const char* codec : {"dense", "qsgd", "strom", "dgc", "mcgq"}) {
    EXPECT_EQ(RuleOf("'sbc'", absl::StrCat("'", codec, "'")), "mean") << codec;
  }
  for (const char* feedback : {"error_feedback", "adaptive_decay"}) {
    EXPECT_EQ(RuleOf("'sbc'", absl::StrCat("'sbc'\nfeedback = '", feedback, "'")), "imputed_mean") << feedback;
  }
  EXPECT_EQ(RuleOf("'sbc'", "'sbc'\nfeedback = 'none'"), "mean");
  EXPECT_EQ(RuleOf("'dense'", "'forward'"), "imputed_mean");
  EXPECT_EQ(RuleOf("clients = 11", "clients = 11\nweighting = 'samples'"), "imputed_mean");
  EXPECT_EQ(RuleOf("clients = 11", "clients = 11\nmode = 'buffered'\nbuffer = 11"), "mean");
}

TEST(RunConfigAggregation, CompletesAConfigurationOfAnOlderProgram) {
  v1::RunConfig before = Least(), mean = Least();
  before.clear_aggregation();
  before.clear_policy();
  mean.mutable_aggregation()->set_rule("mean");
  EXPECT_EQ(WithLaterDefaults(before).SerializeAsString(), mean.SerializeAsString()) << "it began with the average";
}

TEST(RunConfigAggregation, RulesNeedADownstreamThatCanTellTheirStep) {
  EXPECT_THAT(RobustError("downstream = 'dense'", "downstream = 'forward'"),
              AllOf(HasSubstr("x.toml:8: "), HasSubstr("aggregation.rule = 'multi_krum' makes more of a round"),
                    HasSubstr("use 'auto', 'dense' or a codec")));
  for (const char* downstream : {"auto", "stc"}) {
    EXPECT_TRUE(
        ParseRunConfig(absl::StrReplaceAll(kRobust, {{"'dense'", absl::StrCat("'", downstream, "'")}}), "x").ok());
  }
}

TEST(RunConfigAggregation, RulesCountAllUpdatesAlike) {
  EXPECT_THAT(RobustError("clients = 11", "clients = 11\nweighting = 'samples'"),
              HasSubstr("believes what a client says about itself; use 'uniform'"));
  EXPECT_THAT(RobustError("clients = 11", "clients = 11\nmode = 'buffered'\nbuffer = 11"),
              HasSubstr("come from several; use 'synchronous'"));
  EXPECT_TRUE(ParseRunConfig(absl::StrReplaceAll(kRobust, {{"clients = 11", "clients = 11\nweighting = 'samples'"},
                                                           {"'multi_krum'", "'imputed_mean'"}}),
                             "x")
                  .ok());
}

TEST(RunConfigAggregation, EveryRoundMustBeLargeEnough) {
  EXPECT_THAT(RobustError("byzantine = 3", "byzantine = 5"),
              HasSubstr("byzantine = 5 needs 13 updates in every round, and a round has 11; raise rounds.clients"));
  EXPECT_THAT(RobustError("'multi_krum'", "'bulyan'"), HasSubstr("needs 15 updates in every round"));
  EXPECT_THAT(RobustError("clients = 11", "clients = 11\nquorum = 8"),
              AllOf(HasSubstr("needs 9 updates in every round"), HasSubstr("rounds.quorum = 8 closes one with fewer")));
  EXPECT_TRUE(ParseRunConfig(absl::StrReplaceAll(kRobust, {{"clients = 11", "clients = 11\nquorum = 9"}}), "x").ok());
  EXPECT_THAT(RobustError("clients = 11", "clients = 22\nselection = 'random'\nfraction = 0.35"),
              HasSubstr("a round has 8"));
  EXPECT_THAT(RobustError("clients = 11", "clients = 2049"), HasSubstr("at most 2048 of them, and a round has 2049"));
  EXPECT_THAT(RobustError("keep = 4", "keep = 9"), HasSubstr("aggregation.keep = 9 is more than the 8 updates"));
}

TEST(RunConfigAggregation, GradientsAreNoUpdates) {
  const std::string epochs =
      absl::StrReplaceAll(kRobust, {{"name = 'sbc'", "name = 'dense'\nfeedback = 'discard'"},
                                    {"clients = 11", "clients = 11\nmode = 'buffered'\nbuffer = 11"},
                                    {"local_steps = 10", "local_steps = 1"},
                                    {"learning_rate = 0.5", "learning_rate = 0.5\nname = 'sgd'\nmomentum = 0.0"}});
  const std::string server = "[server]\noptimizer = 'svrg'\nepoch_length = 2\n";
  const auto policy = ParseRunConfig(absl::StrReplaceAll(epochs, {{"'multi_krum'", "'mean'"}}) + server, "x");
  EXPECT_THAT(std::string(policy.status().message()), HasSubstr("[policy] looks at updates"));
  const size_t begin = epochs.find("[policy]"), end = epochs.find("[aggregation]");
  const auto rule = ParseRunConfig(epochs.substr(0, begin) + epochs.substr(end) + server, "x");
  EXPECT_FALSE(rule.ok());
  const auto neither = ParseRunConfig(epochs.substr(0, begin) + server, "x");
  EXPECT_TRUE(neither.ok()) << neither.status();
}

TEST(RunConfigAggregation, TheExampleIsARun) {
  const auto config = LoadRunConfig(InSource("deploy/runs/mnist-robust.toml"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(ToCore(*config)->aggregation.rule, "multi_krum");
}

TEST(RunConfigAggregation, RangesAreThoseOfTheSchema) {
  EXPECT_THAT(RobustError("trim = 0.25", "trim = 0.51"), HasSubstr("allowed range 0 to 0.5"));
  EXPECT_THAT(RobustError("cosine = -0.25", "cosine = -1.5"), HasSubstr("allowed range -1 to 1"));
  EXPECT_THAT(RobustError("norm_bound = 2.5", "norm_bound = -1.0"), HasSubstr("policy.norm_bound"));
  EXPECT_THAT(RobustError("'skip'", "'drop'"), HasSubstr("'share', 'skip' or 'zero'"));
  EXPECT_THAT(RobustError("'multi_krum'", "'krumm'"), HasSubstr("'mean', 'median', 'trimmed_mean'"));
}

}  // namespace
}  // namespace terse
