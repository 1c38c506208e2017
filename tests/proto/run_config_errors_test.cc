// All errors of a run file at once, and the fit of its model and data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/run_config_loader.h"
#include "proto/run_config_rules.h"
#include "tests/proto/least_run.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CheckRunText, FindsEveryError) {
  const std::string text =
      absl::StrReplaceAll(kLeast, {{"name = 'r'", "name = 'a/b'\nseeds = 2"},
                                   {"local_steps = 10", "local_steps = 0"},
                                   {"learning_rate = 0.5", "learning_rate = 'fast'"},
                                   {"count = 3", "count = 3\nclients = 2\nquorum = 3\n[clients]\nallow = [1, 'a b']"}});
  std::vector<std::string> lines;
  for (const RunFileError& error : CheckRunText(text, "x.toml").errors) {
    lines.push_back(absl::StrCat(error.line, " ", error.key));
  }
  EXPECT_THAT(lines, ElementsAre("2 seeds", "6 train.optimizer.learning_rate", "14 clients.allow[0]",
                                 "4 train.local_steps", "1 name", "12 rounds.quorum"));
}

// A rule that reads a broken value would say what is wrong once that is mended.
TEST(CheckRunText, SkipsRulesThatReadABrokenKey) {
  const std::string text =
      absl::StrReplaceAll(kLeast, {{"count = 3", "count = 3\nclients = 0\nquorum = 3"}, {"[codec]\n", "[[codec]]\n"}});
  std::vector<std::string> keys;
  for (const RunFileError& error : CheckRunText(text, "x.toml").errors) keys.push_back(error.key);
  EXPECT_THAT(keys, ElementsAre("codec", "rounds.clients"));
}

// The entries behind one of a wrong type have other numbers in the message than in the file.
TEST(CheckRunText, AnArrayWithAnEntryOfAWrongTypeHasThatErrorAlone) {
  const std::string text = absl::StrCat(kLeast, "[control]\nbits = ['x', 4, 99]\n");
  std::vector<std::string> errors;
  for (const RunFileError& error : CheckRunText(text, "x.toml").errors) errors.push_back(error.reason);
  EXPECT_THAT(errors, ElementsAre("control.bits[0] is a string; give an integer"));
}

TEST(CheckRunText, ArraysHaveABound) {
  v1::RunConfig config = Least();
  for (int i = 0; i < 100000; ++i) config.mutable_control()->add_bits(0);
  ConfigViolations violations;
  CheckFields(config, "", &violations);
  EXPECT_EQ(violations.size(), kMostViolations);
  EXPECT_THAT(std::string(ValidateRunConfig(config).message()), HasSubstr("control.bits[0] = 0 is below"));
}

TEST(ParseRunConfig, AModelThatOnlyTrainersKnowHasNoTestSet) {
  const auto with = [](const char* tables) { return ErrorOf("[train]\n", absl::StrCat(tables, "[train]\n")); };
  const std::string external = "[model]\nname = 'external'\n[data]\nname = 'external'\n";
  const auto good = ParseRunConfig(absl::StrReplaceAll(kLeast, {{"[train]\n", external + "[train]\n"}}), "x.toml");
  EXPECT_TRUE(good.ok()) << good.status();
  EXPECT_THAT(with("[model]\nname = 'external'\n"), HasSubstr("data.name = 'mnist' is read by nobody"));
  EXPECT_THAT(with("[data]\nname = 'external'\n"), HasSubstr("has no test set for model.name = 'lenet5_caffe'"));
}

TEST(ParseRunConfig, ModelDataAndLossFit) {
  const auto with = [](const char* tables) { return ErrorOf("[train]\n", absl::StrCat(tables, "[train]\n")); };
  EXPECT_EQ(with("[model]\nname = 'char_lstm'\n"),
            "x.toml:3: model.name = 'char_lstm' takes texts, and data.name = 'mnist' is made of examples; choose a "
            "model and a data set that fit");
  EXPECT_THAT(with("[data]\nname = 'cifar10'\n"), HasSubstr("takes examples of 1 x 28 x 28, and those of"));
  EXPECT_THAT(with("[model]\nname = 'logistic'\n[data]\nname = 'libsvm'\nfeatures = 7\n"),
              HasSubstr("set model.inputs = 7"));
  EXPECT_THAT(with("[model]\nclasses = 3\n"), HasSubstr("tells 3 classes apart, and data.name = 'mnist' has 10"));
  EXPECT_THAT(
      with("[model]\nname = 'logistic'\ninputs = 784\nclasses = 10\n"),
      HasSubstr("tells 2 classes apart, and data.name = 'mnist' has 10; choose a model and a data set that fit"));
  EXPECT_THAT(with("[model]\nname = 'resnet18'\n[data]\nname = 'cifar10'\n"),
              HasSubstr("tells 100 classes apart, and data.name = 'cifar10' has 10; set model.classes = 10"));
  const std::string wider = "[model]\nname = 'resnet18'\nclasses = 20\n[data]\nname = 'cifar10'\n[train]\n";
  EXPECT_TRUE(ParseRunConfig(absl::StrReplaceAll(kLeast, {{"[train]\n", wider}}), "x").ok()) << "who asks gets it";
  EXPECT_THAT(ErrorOf("local_steps = 10", "local_steps = 10\nloss = 'lm_cross_entropy'"), HasSubstr("is for texts"));
  const std::string plugin = absl::StrReplaceAll(kLeast, {{"[train]\n", "[data]\nname = 'plugin'\n[train]\n"}});
  EXPECT_TRUE(ParseRunConfig(plugin, "x").ok());
}

}  // namespace
}  // namespace terse
