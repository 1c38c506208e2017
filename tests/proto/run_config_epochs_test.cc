#include "proto/run_config_epochs.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr char kRun[] =
    "name = 'r'\n"
    "[train]\nlocal_steps = 1\n"
    "[train.optimizer]\nname = 'sgd'\nmomentum = 0.0\nlearning_rate = 1.0\n"
    "[codec]\nname = 'low_precision'\nfeedback = 'discard'\ndownstream = 'low_precision'\n"
    "[downstream]\nbits = 9\n"
    "[server]\noptimizer = 'acc_svrg'\nlearning_rate = 0.7\nepoch_length = 30\n"
    "[rounds]\ncount = 62\nmode = 'buffered'\n";

std::string ErrorOf(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kRun, {{from, to}});
  EXPECT_NE(text, kRun);
  const auto config = ParseRunConfig(text, "x.toml");
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << config.status() << text;
  return std::string(config.status().message());
}

TEST(RunConfigEpochs, CarriesEverySetting) {
  const auto config = ParseRunConfig(
      absl::StrReplaceAll(kRun,
                          {{"epoch_length = 30\n", "epoch_length = 30\nprecision_loss = 0.5\nbit_centering = true\n"}}),
      "x.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  const RunConfig run = *ToCore(*config);
  EXPECT_EQ(run.server.name, "acc_svrg");
  EXPECT_EQ(run.server.epoch_length, 30);
  EXPECT_EQ(run.server.precision_loss, 0.5);
  EXPECT_TRUE(run.server.bit_centering);
  EXPECT_EQ(run.downstream_codec.bits, 9);
  EXPECT_EQ(run.codec.feedback, "discard");
}

TEST(RunConfigEpochs, ARunWithoutThemHasNone) {
  const auto config = ParseRunConfig(
      "name = 'r'\n[train]\nlocal_steps = 1\n[train.optimizer]\nlearning_rate = 1.0\n[codec]\nname = 'sbc'\n"
      "[rounds]\ncount = 3\n[data]\nexamples = 70\nshards = 9\n",
      "x.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  const RunConfig run = *ToCore(*config);
  EXPECT_EQ(run.server.epoch_length, ServerOptimizerSpec().epoch_length);
  EXPECT_EQ(run.server.precision_loss, ServerOptimizerSpec().precision_loss);
  EXPECT_EQ(run.server.bit_centering, ServerOptimizerSpec().bit_centering);
  EXPECT_EQ(run.data.examples, 70);
  EXPECT_EQ(run.data.shards, 9);
  EXPECT_EQ(ShardsOf(run), 9);
}

TEST(RunConfigEpochs, TakeOneGradientAtATime) {
  const std::pair<const char*, const char*> changes[] = {
      {"mode = 'buffered'", "mode = 'synchronous'"},
      {"local_steps = 1", "local_steps = 2"},
      {"local_steps = 1", "local_steps = 1\nproximal = 0.5"},
      {"name = 'sgd'\n", "name = 'adam'\n"},
      {"momentum = 0.0", "momentum = 0.5"},
      {"momentum = 0.0", "momentum = 0.0\nclip_norm = 1.0"},
      {"feedback = 'discard'", "feedback = 'discard'\npositions = 'shared'"},
      {"[codec]", "[train.schedule]\nfactor = 0.1\nat = [30]\n[codec]"},
      {"[train]", "[data]\naugment = 'pad_crop_flip'\n[train]"},
      {"feedback = 'discard'", "feedback = 'none'"},
      {"bits = 9", "bits = 9\nfeedback = 'error_feedback'"},
  };
  for (const auto& [from, to] : changes) {
    EXPECT_THAT(ErrorOf(from, to), HasSubstr("takes gradients from clients, one at a time; set ")) << to;
  }
}

TEST(RunConfigEpochs, SendModels) {
  EXPECT_THAT(ErrorOf("downstream = 'low_precision'", "downstream = 'auto'"), HasSubstr("sends models; use 'dense'"));
  EXPECT_THAT(ErrorOf("downstream = 'low_precision'", "downstream = 'qsgd'"), HasSubstr("sends models; use 'dense'"));
  const std::string whole = absl::StrReplaceAll(kRun, {{"downstream = 'low_precision'", "downstream = 'dense'"}});
  EXPECT_TRUE(ParseRunConfig(whole, "x.toml").ok());
  for (const char* setting : {"precision_loss = 0.5\n", "bit_centering = true\n"}) {
    const std::string text = absl::StrReplaceAll(whole, {{"[rounds]", absl::StrCat(setting, "[rounds]")}});
    EXPECT_THAT(std::string(ParseRunConfig(text, "x.toml").status().message()), HasSubstr("sends them whole"));
  }
  EXPECT_THAT(ErrorOf("bits = 9\n[server]\n", "bits = 1\n[server]\nprecision_loss = 0.5\n"), HasSubstr("from 2 on"));
  for (const char* setting : {"bucket = 64", "grouping = 'merge_small'"}) {
    EXPECT_THAT(
        ErrorOf("bits = 9\n[server]\n", absl::StrCat("bits = 9\n", setting, "\n[server]\nprecision_loss = 0.5\n")),
        HasSubstr("one scale a tensor, or one in all"));
  }
}

TEST(RunConfigEpochs, AreThoseOfTheirOptimizers) {
  EXPECT_THAT(ErrorOf("epoch_length = 30", "epoch_length = 0"), HasSubstr("at least 1 inner iteration"));
  EXPECT_THAT(ErrorOf("'acc_svrg'", "'sgd'"), HasSubstr("epochs are those of 'svrg' and 'acc_svrg'"));
  EXPECT_THAT(ErrorOf("optimizer = 'acc_svrg'\nlearning_rate = 0.7\nepoch_length = 30\n", "precision_loss = 0.5\n"),
              HasSubstr("are for optimizer = 'svrg' or 'acc_svrg'"));
  EXPECT_THAT(ErrorOf("optimizer = 'acc_svrg'\nlearning_rate = 0.7\nepoch_length = 30\n", ""),
              HasSubstr("codec.feedback = 'discard' loses updates that come late"));
}

}  // namespace
}  // namespace terse
