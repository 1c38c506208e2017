// tersectl run create: what arrives at the coordinator, and what never leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/module_file.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class CreateTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(directory_.path(), "/", name);
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  // A run file with these keys in its table [model].
  std::string RunWith(const std::string& model) {
    return Write("run.toml", absl::StrCat("name = 'mine'\n[model]\n", model,
                                          "\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 0.1\n"
                                          "[codec]\nname = 'sbc'\n[rounds]\ncount = 3\n"));
  }
  CtlOutcome Create(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", "create"});
    return InvokeAt(server_.address(), std::move(arguments));
  }

  FakeAdminServer server_;
  const TempDirectory directory_;
};

TEST_F(CreateTest, SendsTheConfigurationWithTheHashAndTheFileInPieces) {
  std::string module(600'000, 'm');
  for (size_t i = 0; i < module.size(); i += 997) module[i] = static_cast<char>(i);
  const std::string run = RunWith("name = 'torchscript'"), model = Write("model.pt", module);
  const CtlOutcome created = Create({"--run-file", run, "--model", model});
  EXPECT_EQ(created.code, kExitOk) << created.err;
  EXPECT_THAT(created.out, StartsWith("run mine is served\n"));
  EXPECT_THAT(created.out, HasSubstr("--allow-model " + ModuleHash(module)));
  EXPECT_EQ(server_.created.name(), "mine");
  EXPECT_EQ(server_.created.rounds().clients(), 4) << "defaults are filled in";
  EXPECT_EQ(server_.created.model().hash(), ModuleHash(module));
  EXPECT_TRUE(server_.created_module == module);
  EXPECT_EQ(server_.created_pieces, 3);
  json reply = json::parse(Create({"--run-file", run, "--model", model, "--json"}).out);
  EXPECT_EQ(reply["traffic"]["per_million_parameters"], true) << "an earlier release does not say how large it is";
  reply.erase("traffic");
  EXPECT_EQ(reply, (json{{"run", "mine"}, {"model_hash", ModuleHash(module)}, {"paused", false}}));
}

TEST_F(CreateTest, SendsARunOfABuiltInModelWithoutAFile) {
  const CtlOutcome created = Create({"--run-file", RunWith("name = 'perceptron'")});
  EXPECT_THAT(created.out, MatchesRegex("run mine is served\na client sends about [^\n]*million parameters [^\n]*\n"))
      << created.err;
  EXPECT_EQ(server_.created.model().name(), "perceptron");
  EXPECT_EQ(server_.created.model().hash(), "");
  EXPECT_EQ(server_.created_module, "");
}

TEST_F(CreateTest, SaysWhatARoundWillCost) {
  server_.created_elements = 79510;
  const std::string run =
      Write("large.toml",
            absl::StrCat("name = 'mine'\n[train]\nlocal_steps = 1\n[train.optimizer]\n",
                         "learning_rate = 0.1\n[codec]\nname = 'sbc'\n", "[rounds]\ncount = 1\nclients = 100\n"));
  EXPECT_THAT(
      Create({"--run-file", run}).out,
      MatchesRegex("run mine is served\na client sends about 8[0-9][0-9] B and receives about 8[0-9].[0-9] kB a round "
                   "\\(of 100 updates\\)\nwith codec.downstream = 'stc' with downstream.density = 0.01 it would "
                   "receive about 9[0-9][0-9] B, 1/[89][0-9] of that\n"));
  const json traffic = json::parse(Create({"--run-file", run, "--json"}).out)["traffic"];
  EXPECT_EQ(traffic["parameters"], 79510);
  EXPECT_EQ(traffic["updates_per_round"], 100);
  EXPECT_NEAR(traffic["bytes_up_per_client_round"].get<double>(), 810, 30);
  EXPECT_NEAR(traffic["bytes_down_per_client_round"].get<double>(), 81000, 3000);
  EXPECT_EQ(traffic["down_is_at_most"], false);
  EXPECT_THAT(traffic["cheaper_setting"].get<std::string>(), HasSubstr("stc"));
  EXPECT_NEAR(traffic["cheaper_bytes_down"].get<double>(), 920, 40);
}

TEST_F(CreateTest, APausedOneWaitsForItsStart) {
  server_.created_state = "paused";
  const std::string run = RunWith("name = 'perceptron'");
  const std::string created = Create({"--run-file", run}).out;
  EXPECT_EQ(Create({"--run-file", run, "--paused"}).out,
            absl::StrCat(created, "it opens no round until\n  tersectl run start mine\n"));
  EXPECT_TRUE(server_.created_paused);
  EXPECT_EQ(json::parse(Create({"--run-file", run, "--paused", "--json"}).out)["paused"], true);
  server_.created_state = "";
  const CtlOutcome earlier = Create({"--run-file", run, "--paused"});
  EXPECT_EQ(earlier.code, kExitFailed);
  EXPECT_THAT(earlier.err, HasSubstr("opens rounds"));
  EXPECT_THAT(earlier.err, HasSubstr("`tersectl run pause mine`"));
  EXPECT_EQ(Create({"--run-file", run}).code, kExitOk);
  EXPECT_FALSE(server_.created_paused);
}

TEST_F(CreateTest, WhatDoesNotBelongTogetherIsNotSent) {
  const std::string model = Write("model.pt", "module");
  const auto refusal = [&](const std::string& in_model, std::vector<std::string> more) {
    more.insert(more.begin(), {"--run-file", RunWith(in_model)});
    const CtlOutcome refused = Create(more);
    EXPECT_EQ(refused.code, kExitInvalidRun) << in_model;
    return refused.err;
  };
  EXPECT_THAT(refusal("name = 'perceptron'", {"--model", model}),
              HasSubstr("trains model 'perceptron'; to train " + model + " set model.name = 'torchscript'"));
  EXPECT_THAT(refusal("name = 'torchscript'", {}), HasSubstr("give its file with --model"));
  EXPECT_THAT(refusal(absl::StrCat("name = 'torchscript'\nhash = '", ModuleHash("other"), "'"), {"--model", model}),
              HasSubstr(absl::StrCat("wants the model file ", ModuleHash("other"), ", and ", model, " is ",
                                     ModuleHash("module"))));
  EXPECT_THAT(refusal("name = 'torchscript'", {"--model", Write("empty.pt", "")}), HasSubstr("empty.pt is empty"));
  EXPECT_THAT(refusal("name = 'no such'", {}), HasSubstr("run.toml:3: model.name = 'no such'"));
  EXPECT_EQ(server_.created.name(), "");
  EXPECT_EQ(Create({"--run-file", RunWith("name = 'torchscript'"), "--model", directory_.path() + "/none.pt"}).code,
            kExitUsage);
  EXPECT_EQ(Create({}).code, kExitUsage);
}

TEST_F(CreateTest, TheNameOfARunIsNoRunFile) {
  const std::string run = RunWith("name = 'perceptron'");
  const std::string line =
      "tersectl: --run: this is a run's name, and `run create` takes a file; did you mean '--run-file'?\n";
  const auto expect_refusal = [&line](const CtlOutcome& refused) {
    EXPECT_EQ(refused.code, kExitUsage);
    EXPECT_EQ(refused.err, line);
  };
  expect_refusal(Create({"--run", run}));
  expect_refusal(Create({"--run=" + run}));
  expect_refusal(Create({"--run-file", run, "--run", "other"}));
  expect_refusal(Invoke({"--admin", server_.address(), "--run", "other", "run", "create", "--run-file", run}));
  EXPECT_EQ(server_.created.name(), "");
}

TEST_F(CreateTest, SaysWhatTheCoordinatorAnswers) {
  server_.creation = grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "there is a run 'mine' already");
  const CtlOutcome twice = Create({"--run-file", RunWith("name = 'perceptron'")});
  EXPECT_EQ(twice.code, kExitFailed);
  EXPECT_THAT(twice.err, HasSubstr("answers: there is a run 'mine' already"));
  server_.creation = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no TorchScript");
  EXPECT_EQ(Create({"--run-file", RunWith("name = 'perceptron'")}).code, kExitInvalidRun);
  EXPECT_EQ(Invoke({"--admin", "127.0.0.1:1", "run", "create", "--run-file", RunWith("name = 'perceptron'")}).code,
            kExitUnreachable);
}

}  // namespace
}  // namespace terse
