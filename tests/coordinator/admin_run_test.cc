// tersectl run: the group's commands are those of the top level, with the run's name behind them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/coordinator/tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class RunGroupTest : public ::testing::Test {
 protected:
  RunGroupTest() {
    server_.status.set_run("demo");
    server_.status.set_round(7);
  }
  CtlOutcome Ask(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--admin", server_.address()});
    return Invoke(arguments);
  }
  // Which run the coordinator heard of in a command that works.
  std::string AskedRun(const std::vector<std::string>& arguments) {
    server_.asked_run = "none was asked for";
    const CtlOutcome outcome = Ask(arguments);
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    return server_.asked_run;
  }

  FakeAdminServer server_;
  TempDirectory directory_;
};

TEST_F(RunGroupTest, TheNameStandsBehindTheCommandOrAfterRun) {
  for (const char* verb : {"start", "status", "pause", "resume", "abort", "stop"}) {
    EXPECT_EQ(AskedRun({"run", verb, "demo"}), "demo") << verb;
    EXPECT_EQ(AskedRun({"run", verb, "--run", "demo"}), "demo") << verb;
    EXPECT_EQ(AskedRun({"--run", "demo", "run", verb}), "demo") << verb;
    EXPECT_EQ(AskedRun({"run", verb}), "") << verb << " is about the only one";
    EXPECT_EQ(AskedRun({"run", verb, "pause"}), "pause") << "a run may have a command's name";
    for (const std::vector<std::string>& both : {std::vector<std::string>{"run", verb, "demo", "--run", "demo"},
                                                 std::vector<std::string>{"--run", "demo", "run", verb, "demo"}}) {
      const CtlOutcome twice = Ask(both);
      EXPECT_EQ(twice.code, kExitUsage) << verb;
      EXPECT_THAT(twice.err, HasSubstr("NAME excludes --run"));
    }
  }
}

TEST_F(RunGroupTest, DoesWhatTheTopLevelDoes) {
  for (const char* verb : {"status", "pause", "resume", "abort", "stop"}) {
    EXPECT_EQ(Ask({"run", verb, "demo", "--json"}).out, Ask({verb, "--run", "demo", "--json"}).out) << verb;
  }
  EXPECT_EQ(Ask({"run", "start", "demo"}).out, "active\n");
  v1::Run run;
  run.set_name("demo");
  server_.runs = {run};
  EXPECT_THAT(Ask({"run", "list"}).out, HasSubstr("demo"));
  EXPECT_EQ(Ask({"run", "list"}).out, Ask({"runs"}).out);
  Ask({"run", "pause", "demo", "--reason", "why not"});
  EXPECT_EQ(server_.asked_reason, "why not");
  const std::string valid = std::string(TERSE_RUNS_DIR) + "/lenet5-sbc2.toml";
  EXPECT_THAT(Invoke({"run", "validate", valid}).out, HasSubstr(": valid; run "));
  EXPECT_EQ(Invoke({"run", "validate", valid}).out, Invoke({"validate", valid}).out);
  EXPECT_EQ(Invoke({"run", "validate", directory_.path() + "/none.toml"}).code, kExitFailed);
}

TEST_F(RunGroupTest, EndsRunsAndNeverTheCoordinator) {
  EXPECT_EQ(Ask({"run", "stop", "--shutdown"}).code, kExitUsage);
  EXPECT_FALSE(server_.stopped);
  EXPECT_EQ(Ask({"run", "stop"}).code, kExitOk);
  EXPECT_TRUE(server_.stopped);
  EXPECT_FALSE(server_.shut_down);
  EXPECT_EQ(Invoke({"--admin", "127.0.0.1:1", "run", "stop"}).code, kExitUnreachable);
  EXPECT_EQ(Ask({"run"}).code, kExitUsage);
}

}  // namespace
}  // namespace terse
