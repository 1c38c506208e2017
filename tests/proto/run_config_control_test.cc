#include "proto/run_config_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compression/run_codecs.h"
#include "core/codec_choices.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"
#include "tests/proto/least_run.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunConfig WithControl(const std::string& codec, const std::string& control) {
  const auto config = ParseRunConfig(
      absl::StrCat(absl::StrReplaceAll(kLeast, {{"name = 'sbc'\n", absl::StrCat("name = '", codec, "'\n")}}),
                   "[control]\nname = 'schedule'\n", control),
      "x.toml");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *ToCore(*config) : RunConfig();
}

TEST(RunConfigControl, CarriesEverySettingOfTheControl) {
  const ControlSpec control = WithControl("sbc",
                                          "by = 'iteration'\nat = [5, 70]\npatience = 3\nlocal_steps = [10, 5, 1]\n"
                                          "density = [0.5, 0.25, 1]\n")
                                  .control;
  EXPECT_EQ(control.name, "schedule");
  EXPECT_EQ(control.by, "iteration");
  EXPECT_THAT(control.at, ElementsAre(5, 70));
  EXPECT_EQ(control.patience, 3);
  EXPECT_THAT(control.local_steps, ElementsAre(10, 5, 1));
  EXPECT_THAT(control.density, ElementsAre(0.5, 0.25, 1));
  EXPECT_THAT(WithControl("qsgd", "at = [5]\nbits = [8, 1]\n").control.bits, ElementsAre(8, 1));
  v1::RunConfig joint = Least();
  joint.mutable_control()->set_budget(17);
  joint.mutable_control()->set_price(18);
  EXPECT_FALSE(ToCore(joint).ok());
  joint.mutable_control()->set_name("joint");
  joint.mutable_control()->add_local_steps(1);
  joint.mutable_control()->add_density(0.25);
  joint.mutable_control()->add_density(0.5);
  joint.mutable_limits()->set_iterations(1);
  joint.mutable_control()->set_price(0);
  EXPECT_EQ(ToCore(joint)->control.budget, 17);
  joint.mutable_control()->set_budget(0);
  joint.mutable_control()->set_price(18);
  EXPECT_EQ(ToCore(joint)->control.price, 18);
  EXPECT_EQ(ToCore(Least())->control.name, ControlSpec().name);
}

// Returns the error of the least run file with `control` added.
std::string ControlError(const std::string& control, const std::string& codec = "name = 'sbc'\n") {
  return ErrorOf("name = 'sbc'\n", codec + "[control]\n" + control);
}

TEST(RunConfigControl, StagesMustFitEachOther) {
  const std::string head = "name = 'schedule'\n";
  EXPECT_THAT(ControlError(head), HasSubstr("has 0 stages; give 2 to 256"));
  EXPECT_THAT(ControlError(head + "density = [0.5]\n"), HasSubstr("has 1 stages"));
  EXPECT_THAT(ControlError(head + "at = [3]\nlocal_steps = [4, 5]\ndensity = [0.5, 0.5, 0.5]\n"),
              HasSubstr("control.local_steps has 2 values for 3 stages"));
  EXPECT_THAT(ControlError(head + "local_steps = [4, 5]\n"), HasSubstr("control.at must have 1 increasing values"));
  EXPECT_THAT(ControlError(head + "at = [3, 3]\nlocal_steps = [4, 5, 6]\n"), HasSubstr("increasing"));
  EXPECT_THAT(ControlError(head + "by = 'plateau'\nat = [3]\nlocal_steps = [4, 5]\n"), HasSubstr("must have 0"));
  EXPECT_THAT(ControlError(head + "at = [3]\nbits = [4, 17]\n"), HasSubstr("control.bits[1] = 17 is above"));
  EXPECT_THAT(ControlError(head + "at = [3]\ndensity = [0.5, 0]\n"), HasSubstr("control.density[1] = 0 is below"));
  EXPECT_THAT(ControlError(head + "at = [3]\ndensity = [0.5, 'x']\n"), HasSubstr("give a number"));
}

TEST(RunConfigControl, StagesMustChangeSomething) {
  const std::string head = "name = 'schedule'\nat = [3]\n";
  EXPECT_THAT(ControlError(head + "bits = [4, 5]\n"), HasSubstr("control.bits changes nothing for codec.name = 'sbc'"));
  EXPECT_THAT(ControlError(head + "density = [0.5, 0.1]\n", "name = 'qsgd'\n"),
              HasSubstr("control.density changes nothing for codec.name = 'qsgd'; it is for sbc, stc"));
  EXPECT_THAT(ControlError(head + "bits = [8, 9]\n", "name = 'qsgd'\n"),
              HasSubstr("control.bits[1] = 9; qsgd has 1 to 8"));
  EXPECT_THAT(ControlError(head + "bits = [1, 9]\n", "name = 'low_precision'\n"),
              HasSubstr("control.bits[0] = 1; low_precision has 2 to 16"));
  // Every codec that the rules name takes what they let through.
  for (const std::string& codec : CodecsWithDensity()) {
    const RunConfig run = WithControl(codec, "at = [3]\ndensity = [1, 0.001]\n");
    EXPECT_TRUE(MakeUpdateCodec(run, *Layout::Create({{"w", {50}}})).ok()) << codec;
  }
  for (const auto& [codec, bits] : {std::pair("qsgd", "[1, 8]"), std::pair("low_precision", "[2, 16]")}) {
    const RunConfig run = WithControl(codec, absl::StrCat("at = [3]\nbits = ", bits, "\n"));
    EXPECT_TRUE(MakeUpdateCodec(run, *Layout::Create({{"w", {50}}})).ok()) << codec;
  }
}

TEST(RunConfigControl, AControllerNeedsARunThatItCanPlan) {
  EXPECT_THAT(ControlError("name = 'mqgrad'\n"), HasSubstr("use codec.name = 'qsgd' or 'low_precision'"));
  EXPECT_THAT(ControlError("name = 'mqgrad'\n", "name = 'qsgd'\ndownstream = 'stc'\n"),
              HasSubstr("codec.downstream = 'stc' has no bits"));
  EXPECT_THAT(ControlError("density = [0.5, 0.1]\n"), HasSubstr("control.name = 'fixed' has no stages"));
  EXPECT_THAT(ControlError("name = 'schedule'\nat = [2]\ndensity = [0.5, 0.1]\n", "name = 'dgc'\nwarmup_rounds = 4\n"),
              HasSubstr("both set the density"));
  EXPECT_THAT(ErrorOf("[rounds]\n",
                      "[control]\nname = 'schedule'\nat = [2]\nlocal_steps = [4, 5]\n"
                      "[rounds]\nmode = 'buffered'\n"),
              HasSubstr("use rounds.mode = 'synchronous'"));
  EXPECT_THAT(ErrorOf("[rounds]\n", "[limits]\niterations = 5\n[rounds]\nmode = 'buffered'\n"),
              HasSubstr("limits.iterations counts the local steps of whole rounds"));
}

// Returns the error of the least run file of joint with `from` replaced by `to`; empty when there is none.
std::string JointError(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrCat(kLeast,
                                        "[control]\nname = 'joint'\nbudget = 1e5\nlocal_steps = [3, 1]\n"
                                        "density = [0.01, 0.1]\n[limits]\niterations = 3\n");
  return std::string(ParseRunConfig(absl::StrReplaceAll(text, {{from, to}}), "x.toml").status().message());
}

TEST(RunConfigControl, JointNeedsWhatItChoosesFromAndSpends) {
  EXPECT_EQ(JointError("joint", "joint"), "");
  EXPECT_EQ(JointError("[3, 1]", "[2, 2]"), "");
  EXPECT_EQ(JointError("budget = 1e5", "price = 2.5"), "");
  EXPECT_THAT(JointError("[3, 1]", "[1, 3]"),
              HasSubstr("control.local_steps = [1, 3]; control.name = 'joint' chooses from 1 to 16"));
  EXPECT_THAT(JointError("[3, 1]", "[]"), HasSubstr("chooses from 1 to 16 local steps"));
  EXPECT_THAT(JointError("[3, 1]", "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"), HasSubstr("from 1 to 16"));
  EXPECT_THAT(JointError("[0.01, 0.1]", "[0.01]"),
              HasSubstr("control.density = [0.01]; control.name = 'joint' chooses from 2"));
  EXPECT_THAT(JointError("[0.01, 0.1]", "[0.1, 0.1]"), HasSubstr("control.density = [0.1, 0.1]"));
  EXPECT_THAT(JointError("budget = 1e5", ""),
              HasSubstr("control.budget = 0 and control.price = 0; control.name = 'joint' needs one"));
  EXPECT_THAT(JointError("budget = 1e5", "budget = 1.0\nprice = 1.0"),
              HasSubstr("control.budget = 1 and control.price = 1;"));
  EXPECT_THAT(JointError("iterations = 3", ""), HasSubstr("set limits.iterations"));
  EXPECT_THAT(JointError("iterations = 3", "iterations = 1000000"), HasSubstr("rounds.count = "));
  EXPECT_THAT(JointError("budget = 1e5", "budget = 1e5\nat = [3]"), HasSubstr("has no stages and no bits"));
  EXPECT_THAT(ControlError("budget = 1.0\n"), HasSubstr("are for control.name = 'joint', not 'fixed'"));
  EXPECT_THAT(ControlError("name = 'joint'\nbudget = 1.0\nlocal_steps = [1]\ndensity = [0.01, 0.1]\n"
                           "[limits]\niterations = 1\n",
                           "name = 'qsgd'\n"),
              HasSubstr("control.density changes nothing for codec.name = 'qsgd'"));
}

}  // namespace
}  // namespace terse
