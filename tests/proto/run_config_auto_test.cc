#include "proto/run_config_auto.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/run_config_convert.h"
#include "tests/proto/least_run.h"

namespace terse {
namespace {

// The least run with another codec table.
RunConfig RunWith(const std::string& codec, const std::string& more = "") {
  const auto config = ParseRunConfig(absl::StrReplaceAll(kLeast, {{"name = 'sbc'\n", codec}}) + more, "x.toml");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? ToCore(*config).value() : RunConfig();
}

constexpr char kBuffered[] = "clients = 4\nmode = 'buffered'\nbuffer = 4\n";

TEST(RunConfigAuto, TheFeedbackMeasuresItsDecayWhereTheLargestAreSent) {
  for (const char* codec : {"sbc", "stc", "sbc_or_stc", "top_k"}) {
    EXPECT_EQ(RunWith(absl::StrCat("name = '", codec, "'\n")).codec.feedback, "adaptive_decay") << codec;
  }
  for (const char* codec : {"dense", "qsgd", "strom", "dgc", "mcgq", "adacomp", "sparseloco", "signsgd"}) {
    EXPECT_EQ(RunWith(absl::StrCat("name = '", codec, "'\n")).codec.feedback, "own") << codec;
  }
}

TEST(RunConfigAuto, TheFeedbackIsTheCodecsOwnWhereADecayCannotBeMeasuredOrIsGiven) {
  EXPECT_EQ(RunWith("name = 'sbc'\ndecay = 0.5\n").codec.feedback, "own");
  EXPECT_EQ(RunWith("name = 'sbc'\n", kBuffered).codec.feedback, "own");
  const std::string schedule = "[control]\nname = 'schedule'\nat = [1]\nlocal_steps = [2, 1]\n";
  EXPECT_EQ(RunWith("name = 'sbc'\n", schedule).codec.feedback, "own");
}

TEST(RunConfigAuto, AFeedbackThatIsNamedStays) {
  for (const char* feedback : {"own", "error_feedback", "none", "momentum"}) {
    EXPECT_EQ(RunWith(absl::StrCat("name = 'sbc'\nfeedback = '", feedback, "'\n")).codec.feedback, feedback);
  }
}

TEST(RunConfigAuto, TheRuleImputesWhereClientsKeepTheSmallElements) {
  for (const char* codec : {"sbc", "stc", "sbc_or_stc", "top_k", "sparseloco"}) {
    EXPECT_EQ(RunWith(absl::StrCat("name = '", codec, "'\n")).aggregation.rule, "imputed_mean") << codec;
  }
  for (const char* codec : {"dense", "qsgd", "strom", "dgc", "mcgq"}) {
    EXPECT_EQ(RunWith(absl::StrCat("name = '", codec, "'\n")).aggregation.rule, "mean") << codec;
  }
  for (const char* feedback : {"own", "error_feedback", "adaptive_decay"}) {
    const std::string codec = absl::StrCat("name = 'sbc'\nfeedback = '", feedback, "'\n");
    EXPECT_EQ(RunWith(codec).aggregation.rule, "imputed_mean") << feedback;
  }
  EXPECT_EQ(RunWith("name = 'sbc'\nfeedback = 'none'\n").aggregation.rule, "mean");
  EXPECT_EQ(RunWith("name = 'sbc'\ndownstream = 'forward'\n").aggregation.rule, "imputed_mean");
  EXPECT_EQ(RunWith("name = 'sbc'\n", "clients = 4\nweighting = 'samples'\n").aggregation.rule, "imputed_mean");
  EXPECT_EQ(RunWith("name = 'sbc'\n", kBuffered).aggregation.rule, "mean");
  EXPECT_EQ(RunWith("name = 'sbc'\n", "[aggregation]\nrule = 'mean'\n").aggregation.rule, "mean");
}

}  // namespace
}  // namespace terse
