// Runs that an operator makes while the coordinator serves, with a model file that only trusting clients fetch.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/fleet_processes.h"
#include "tests/testing/paths.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// The grid's processes train the same whatever the model file holds; how it travels is real.
class Create : public testing::Test {
 protected:
  void SetUp() override {
    std::string module(700'000, 'm');  // three chunks
    for (size_t i = 0; i < module.size(); i += 991) module[i] = static_cast<char>(i / 991);
    WriteText(model_, module);
    WriteText(run_file_,
              "name = 'made'\nmodel.name = 'torchscript'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n"
              "[codec]\nname = 'sbc'\n[rounds]\ncount = 10\nclients = 2\nevaluate_every = 5\n");
    StartCoordinator();
  }
  // In cleartext nobody is known, so it takes everybody's models.
  void StartCoordinator() { fleet_.StartCoordinator(/*run_file=*/"", {{}, "", {"--allow-models", "any"}}); }
  std::string CreateRun(int* code) {
    return fleet_.Ctl({"run", "create", "--run-file", run_file_, "--model", model_, "--json"}, code);
  }
  // The hash of the model of the run, which is made.
  std::string Made() {
    int code = -1;
    const std::string output = CreateRun(&code);
    EXPECT_EQ(code, 0) << output;
    return json::parse(output, nullptr, /*allow_exceptions=*/false).value("model_hash", "");
  }
  int End(int client) { return fleet_.client(client).Wait(kPatience).value_or(-1); }

  FleetProcesses fleet_{Program("grid-coordinator"), Program("grid-client")};
  const std::string model_ = fleet_.directory() / "model.pt";
  const std::string run_file_ = fleet_.directory() / "made.toml";
};

TEST_F(Create, ClientsThatAllowItsModelFetchItAndTrain) {
  const std::string hash = Made();
  fleet_.StartClient(0);
  EXPECT_EQ(End(0), 1);
  EXPECT_THAT(fleet_.client(0).Output(), HasSubstr("start the client with --allow-model " + hash));
  EXPECT_FALSE(std::filesystem::exists(fleet_.client_state(0) + "/module.pt"));
  const Place trusting{{}, "", {"--allow-model", hash}};
  for (const int client : {0, 1}) fleet_.StartClient(client, trusting);
  for (const int client : {0, 1}) {
    EXPECT_EQ(End(client), 0) << fleet_.client(client).Output();
    EXPECT_TRUE(ReadAll(fleet_.client_state(client) + "/module.pt") == ReadAll(model_));
  }
  EXPECT_EQ(QueryNumber(fleet_.database("made"), "SELECT count(*) FROM rounds WHERE state = 'committed'"), 10);
}

// The newest wait that a client's log tells of, in seconds; 0: none yet.
double NewestWait(const std::string& log) {
  static const std::string kWords = "trying again in ";
  const size_t at = log.rfind(kWords);
  return at == std::string::npos ? 0 : std::strtod(log.c_str() + at + kWords.size(), nullptr);
}

TEST_F(Create, WhoeverWaitsForARunAsksEverLessOften) {
  fleet_.StartClient(0, {{}, "", {"--reconnect-after", "0.2"}});
  const auto wait = [&] { return NewestWait(fleet_.client(0).Output()); };
  EXPECT_TRUE(WaitUntil([&] { return wait() > 1; }, kPatience)) << fleet_.client(0).Output();
  Made();
  EXPECT_EQ(End(0), 1);
  EXPECT_THAT(fleet_.client(0).Output(), HasSubstr("start the client with --allow-model"));
}

TEST_F(Create, ANameIsGivenOnceAlsoAfterARestart) {
  const std::string hash = Made();
  for (int i = 0; i < 2; ++i) {
    int code = -1;
    EXPECT_THAT(CreateRun(&code), HasSubstr("there is a run 'made' already; choose another name"));
    EXPECT_EQ(code, 1);
    fleet_.coordinator().Kill();
    StartCoordinator();
  }
  const json status = json::parse(fleet_.Ctl({"status", "--json"}), nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(status["config"]["model"]["hash"], hash);
}

TEST_F(Create, AModelWithoutTorchScriptIsExportedAsWeights) {
  Made();
  int code = -1;
  EXPECT_THAT(fleet_.Ctl({"export", "--out", fleet_.directory() / "all"}, &code),
              HasSubstr("has no TorchScript; export its weights with --format state or npz"));
  EXPECT_EQ(code, 1);
  for (const char* format : {"state", "npz"}) {
    const std::string exported =
        fleet_.Ctl({"export", "--out", fleet_.directory() / format, "--format", format}, &code);
    EXPECT_EQ(code, 0) << exported;
  }
  EXPECT_EQ(ReadAll(fleet_.directory() / "npz/model.npz").substr(0, 2), "PK");
  EXPECT_THAT(ReadAll(fleet_.directory() / "state/model.safetensors"), HasSubstr("\"dtype\":\"F32\""));
}

TEST_F(Create, ABackupHasTheModelFile) {
  const std::string hash = Made();
  int code = -1;
  const std::string saved = fleet_.Ctl({"backup", "--out", fleet_.directory() / "copy"}, &code);
  ASSERT_EQ(code, 0) << saved;
  fleet_.coordinator().Signal(SIGTERM);
  ASSERT_EQ(fleet_.coordinator().Wait(kPatience), absl::optional<int>(0));
  const std::string restored = RunCommand({Program("tersectl"), "restore", fleet_.directory() / "copy", "--state",
                                           fleet_.coordinator_state(), "--run", "again"},
                                          &code);
  ASSERT_EQ(code, 0) << restored;
  StartCoordinator();
  for (const int client : {0, 1}) fleet_.StartClient(client, {{}, "", {"--allow-model", hash, "--run", "again"}});
  for (const int client : {0, 1}) EXPECT_EQ(End(client), 0) << fleet_.client(client).Output();
  EXPECT_TRUE(ReadAll(fleet_.run_state("again") + "/module.pt") == ReadAll(model_));
}

}  // namespace
}  // namespace terse
