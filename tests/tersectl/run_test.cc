// tersectl run: the group's commands are those of the top level, with the run's name behind them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/run_config_loader.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/paths.h"
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
  CtlOutcome Ask(const std::vector<std::string>& arguments) { return InvokeAt(server_.address(), arguments); }
  // Returns the run that the coordinator was asked about by a command that works.
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
  const std::string valid = InSource("deploy/runs/lenet5-sbc2.toml");
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

class DeleteTest : public RunGroupTest {
 protected:
  // A deletion at a terminal where somebody types this.
  CtlOutcome Type(const std::string& typed, const std::vector<std::string>& more = {}) {
    std::vector<const char*> argv = {"tersectl", "--admin", address_.c_str(), "run", "delete", "demo"};
    for (const std::string& argument : more) argv.push_back(argument.c_str());
    std::ostringstream out, err;
    std::istringstream in(typed);
    const int code = RunTersectl(static_cast<int>(argv.size()), argv.data(), {&out, &err, false, &in});
    return {code, out.str(), err.str()};
  }

  const std::string address_ = server_.address();
};

TEST_F(DeleteTest, AsksForTheNameAtATerminal) {
  server_.status.set_state("stopped");
  server_.status.set_version(12);
  const CtlOutcome deleted = Type("demo\n");
  EXPECT_EQ(deleted.code, kExitOk) << deleted.err;
  EXPECT_EQ(deleted.out, "run demo is deleted: 1.23 MB freed\n");
  EXPECT_THAT(deleted.err, HasSubstr("run demo is stopped, at version 12."));
  EXPECT_EQ(server_.asked_deletion.run(), "demo");
  EXPECT_FALSE(server_.asked_deletion.force());
  for (const char* typed : {"", "\n", "y\n", "demo2\n", "Demo\n"}) {
    server_.asked_deletion.Clear();
    const CtlOutcome kept = Type(typed);
    EXPECT_EQ(kept.code, kExitFailed) << typed;
    EXPECT_THAT(kept.err, HasSubstr("nothing is deleted"));
    EXPECT_EQ(server_.asked_deletion.run(), "") << typed;
  }
  const CtlOutcome unasked = Type("", {"--yes", "--force", "--json"});
  EXPECT_EQ(json::parse(unasked.out), (json{{"run", "demo"}, {"bytes", 1'234'567}}));
  EXPECT_EQ(unasked.err, "");
  EXPECT_TRUE(server_.asked_deletion.force());
}

TEST_F(DeleteTest, WithoutATerminalNeedsYes) {
  const CtlOutcome kept = Ask({"run", "delete", "demo"});
  EXPECT_EQ(kept.code, kExitFailed);
  EXPECT_THAT(kept.err, HasSubstr("say so with --yes"));
  EXPECT_EQ(server_.asked_deletion.run(), "");
  EXPECT_EQ(Ask({"run", "delete", "demo", "--yes"}).code, kExitOk);
  EXPECT_EQ(server_.asked_deletion.run(), "demo");
  EXPECT_EQ(Ask({"run", "delete", "--yes"}).code, kExitUsage) << "also when it is the only one";
  server_.deletion = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "run 'demo' is active; end it first");
  const CtlOutcome refused = Ask({"run", "delete", "demo", "--yes"});
  EXPECT_EQ(refused.code, kExitFailed);
  EXPECT_THAT(refused.err, HasSubstr("run 'demo' is active; end it first"));
}

class DiffTest : public RunGroupTest {
 protected:
  std::string Write(const std::string& name, const std::string& more) {
    const std::string path = absl::StrCat(directory_.path(), "/", name);
    std::ofstream(path) << "name = 'mine'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 0.1\n"
                        << "[codec]\nname = 'sbc'\n"
                        << more << "[rounds]\ncount = 3\n";
    return path;
  }
};

TEST_F(DiffTest, OfFilesInTheKeysOfRunFiles) {
  const std::string a = Write("a.toml", ""), b = Write("b.toml", "density = 0.25\n[clients]\nallow = ['x', 'y']\n");
  const CtlOutcome table = Invoke({"run", "diff", a, b});
  EXPECT_EQ(table.code, kExitFailed) << "as diff(1)";
  EXPECT_THAT(table.out, ::testing::ContainsRegex("codec.density  +0.01 +0.25"));
  EXPECT_THAT(table.err, ::testing::ContainsRegex("2 of [0-9]+ settings differ"));
  const json list = json::parse(Invoke({"run", "diff", a, b, "--json"}).out);
  const json allowed = {{"key", "clients.allow"}, {"a", json::array()}, {"b", {"x", "y"}}};
  const json density = {{"key", "codec.density"}, {"a", 0.01}, {"b", 0.25}};
  EXPECT_THAT(list, ::testing::UnorderedElementsAre(allowed, density));
  const CtlOutcome same = Invoke({"run", "diff", a, a});
  EXPECT_EQ(same.code, kExitOk);
  EXPECT_EQ(same.out, "no setting differs\n");
  EXPECT_EQ(json::parse(Invoke({"run", "diff", a, a, "--json"}).out), json::array());
}

TEST_F(DiffTest, OfRunsOfTheCoordinatorWithLaterDefaults) {
  const std::string file = Write("a.toml", "");
  v1::RunConfig config = LoadRunConfig(file).value();
  config.set_name("demo");
  *server_.status.mutable_config() = config;
  EXPECT_EQ(Ask({"run", "diff", "demo", file}).code, kExitOk) << "a name is no setting";
  EXPECT_EQ(server_.asked_run, "demo");
  // A coordinator of an earlier release sends it like this.
  server_.status.mutable_config()->clear_ledger();
  server_.status.mutable_config()->clear_events();
  EXPECT_EQ(Ask({"run", "diff", file, "demo"}).code, kExitOk);
  // One that knew no rules took the average.
  server_.status.mutable_config()->clear_aggregation();
  EXPECT_THAT(Ask({"run", "diff", file, "demo"}).out, ::testing::ContainsRegex("aggregation.rule +\"auto\" +\"mean\""));
  *server_.status.mutable_config()->mutable_aggregation() = config.aggregation();
  server_.status.mutable_config()->mutable_rounds()->set_count(4);
  const CtlOutcome differs = Ask({"run", "diff", file, "demo"});
  EXPECT_EQ(differs.code, kExitFailed);
  EXPECT_THAT(differs.out, ::testing::ContainsRegex("rounds.count +3 +4\n"));
}

TEST_F(DiffTest, TroubleIsNoDifference) {
  const std::string file = Write("a.toml", "");
  EXPECT_EQ(Invoke({"run", "diff", file, directory_.path() + "/none.toml"}).code, kExitUsage);
  EXPECT_EQ(Invoke({"run", "diff", file}).code, kExitUsage);
  EXPECT_EQ(Invoke({"run", "diff", file, Write("b.toml", "density = 2\n")}).code, kExitInvalidRun);
  EXPECT_EQ(Invoke({"--admin", "127.0.0.1:1", "run", "diff", file, "demo"}).code, kExitUnreachable);
}

}  // namespace
}  // namespace terse
