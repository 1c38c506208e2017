// One coordinator and its operator: runs side by side, commands that steer them, backups, state directories.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/fleet_processes.h"
#include "tests/e2e/health.h"
#include "tests/testing/paths.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kForever = 1'000'000;

std::string RunFile(const std::string& name, int64_t rounds) {
  return absl::StrCat("name = '", name,
                      "'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[codec]\nname = 'sbc'\n"
                      "density = 0.02\n[rounds]\ncount = ",
                      rounds, "\nclients = 2\nevaluate_every = 1000000\n[checkpoints]\nevery = 20\n");
}

class Runs : public testing::Test {
 protected:
  std::string WriteRun(const std::string& name, int64_t rounds) {
    const std::string path = fleet_.directory() / (name + ".toml");
    WriteText(path, RunFile(name, rounds));
    return path;
  }
  // A coordinator and two clients with one run.
  void StartFleet(const std::string& name, int64_t rounds) {
    fleet_.StartCoordinator(WriteRun(name, rounds));
    for (int i = 0; i < 2; ++i) fleet_.StartClient(i);
  }
  json Ask(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    int code = -1;
    const std::string output = fleet_.Ctl(arguments, &code);
    EXPECT_EQ(code, 0) << output;
    return json::parse(output, nullptr, /*allow_exceptions=*/false);
  }
  int64_t Number(const std::string& sql, const std::string& run = "") { return QueryNumber(fleet_.database(run), sql); }
  int64_t Committed() { return Number("SELECT count(*) FROM rounds WHERE state = 'committed'"); }
  // Ends the coordinator in order.
  void StopCoordinator() {
    fleet_.coordinator().Signal(SIGTERM);
    ASSERT_EQ(fleet_.coordinator().Wait(kPatience), absl::optional<int>(0)) << fleet_.coordinator().Output();
  }

  FleetProcesses fleet_{Program("grid-coordinator"), Program("grid-client")};
};

TEST_F(Runs, TwoSideBySideEachWithItsOwnClients) {
  const std::string first = WriteRun("first", 30), second = WriteRun("second", 40);
  fleet_.StartCoordinator(first, {{}, "", {"--run-file", second}});
  for (int i = 0; i < 4; ++i) fleet_.StartClient(i, {{}, "", {"--run", i < 2 ? "first" : "second"}});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(fleet_.client(i).Wait(kPatience), absl::optional<int>(0)) << fleet_.client(i).Output();
  }
  // Clients may go before the last evaluation and checkpoint, with which a run ends.
  json runs;
  const auto are_finished = [&] {
    runs = Ask({"runs"});
    return runs.size() == 2 && runs[0]["state"] == "finished" && runs[1]["state"] == "finished";
  };
  ASSERT_TRUE(WaitUntil(are_finished, kPatience)) << runs;
  EXPECT_EQ(runs[0]["name"], "first");
  EXPECT_EQ(runs[1]["version"], 40);
  EXPECT_EQ(Ask({"status", "--run", "first"})["version"], 30);
  EXPECT_EQ(Number("SELECT sum(updates_applied) FROM clients", "first"), 60);
  EXPECT_EQ(Number("SELECT sum(updates_applied) FROM clients", "second"), 80);
  EXPECT_EQ(Number("SELECT count(*) FROM clients WHERE name IN ('client-2', 'client-3')", "second"), 2);

  int code = -1;
  EXPECT_THAT(fleet_.Ctl({"status"}, &code), HasSubstr("name one with --run: first, second"));
  EXPECT_EQ(code, 1);
  EXPECT_THAT(fleet_.Ctl({"status", "--run", "third"}), HasSubstr("no run 'third' is served here"));
  fleet_.StartClient(4);
  EXPECT_EQ(fleet_.client(4).Wait(kPatience), absl::optional<int>(1));
  EXPECT_THAT(fleet_.client(4).Output(), HasSubstr("name one with --run: first, second"));

  StopCoordinator();
  fleet_.StartCoordinator(/*run_file=*/"");
  EXPECT_EQ(Ask({"runs"}).size(), 2u) << "without run files every run is served";
  StopCoordinator();
  int ends = -1;
  const std::string twice =
      RunCommand({Program("grid-coordinator"), "--state", fleet_.coordinator_state(), "--run-file", first, "--run-file",
                  first, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"},
                 &ends);
  EXPECT_EQ(ends, 1);
  EXPECT_THAT(twice, HasSubstr("both name run 'first'"));
}

TEST_F(Runs, PauseOutlivesARestartAndEndsWithResume) {
  StartFleet("paused", kForever);
  ASSERT_TRUE(fleet_.WaitForRounds(5, kPatience)) << fleet_.coordinator().Output();
  EXPECT_EQ(Ask({"pause", "--reason", "maintenance"})["state"], "paused");
  const json status = Ask({"status"});
  EXPECT_EQ(status["reason"], "maintenance");
  const auto none_is_open = [this] { return Number("SELECT count(*) FROM rounds WHERE state = 'open'") == 0; };
  ASSERT_TRUE(WaitUntil(none_is_open, kPatience)) << "the open round goes on to its end";
  const int64_t committed = Committed();
  StopCoordinator();
  fleet_.StartCoordinator(fleet_.directory() / "paused.toml");
  const auto both_are_back = [this] { return Ask({"status"})["clients_connected"] == 2; };
  ASSERT_TRUE(WaitUntil(both_are_back, kPatience));
  EXPECT_EQ(Ask({"status"})["state"], "paused");
  EXPECT_EQ(Committed(), committed);
  EXPECT_EQ(Ask({"resume"})["state"], "active");
  EXPECT_TRUE(fleet_.WaitForRounds(committed + 5, kPatience)) << fleet_.coordinator().Output();
}

TEST_F(Runs, AbortGivesTheOpenRoundUpAndTheRunGoesOn) {
  StartFleet("aborted", kForever);
  ASSERT_TRUE(fleet_.WaitForRounds(5, kPatience));
  fleet_.client(1).Signal(SIGSTOP);  // a round stays open
  int64_t round = -1;
  const auto waits_for_it = [&] {
    const int64_t before = round;
    round = Ask({"status"})["round"];
    const json clients = Ask({"clients"});
    const auto is_done = [](const json& client) {
      return client["name"] == "client-0" && client["state"] == "waiting";
    };
    return round == before && std::any_of(clients.begin(), clients.end(), is_done);
  };
  ASSERT_TRUE(WaitUntil(waits_for_it, kPatience));
  const int64_t committed = Committed();
  EXPECT_EQ(Ask({"abort", "--reason", "a client hangs"})["round"], round);
  fleet_.client(1).Signal(SIGCONT);
  EXPECT_TRUE(fleet_.WaitForRounds(committed + 5, kPatience)) << fleet_.coordinator().Output();
  EXPECT_EQ(Number("SELECT count(*) FROM rounds WHERE state = 'aborted'"), 1);
  EXPECT_EQ(Number(absl::StrCat("SELECT state = 'aborted' FROM rounds WHERE id = ", round)), 1);
  EXPECT_EQ(Number("SELECT sum(resets) FROM clients"), 0) << "the work folds forward";
}

// The ids in lines of JSON, and how many lines there are of a kind.
std::vector<int64_t> IdsOf(const std::string& lines, const std::string& kind = "") {
  std::vector<int64_t> ids;
  for (const auto line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const json event = json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (event.is_object() && (kind.empty() || event["kind"] == kind)) ids.push_back(event["id"]);
  }
  return ids;
}

TEST_F(Runs, EventsAreFollowedOverARestartUntilTheRunEnds) {
  StartFleet("told", kForever);
  ASSERT_TRUE(fleet_.WaitForRounds(5, kPatience)) << fleet_.coordinator().Output();
  const auto follow = [&](const std::string& log, std::vector<std::string> extra) {
    std::vector<std::string> argv = {Program("tersectl"), "--admin", fleet_.addresses().admin, "events", "-f"};
    argv.insert(argv.end(), extra.begin(), extra.end());
    return std::make_unique<Process>(argv, fleet_.directory() / log);
  };
  const auto follower = follow("follower.log", {"--json"});
  const auto has_begun = [&] { return !IdsOf(follower->Output()).empty(); };
  ASSERT_TRUE(WaitUntil(has_begun, kPatience)) << follower->Output();
  fleet_.coordinator().Kill();
  fleet_.StartCoordinator(/*run_file=*/"");
  Ask({"clients", "--set-aside", "client-1", "--reason", "after the restart"});
  const auto tells_of_it = [&] { return IdsOf(follower->Output(), "client_set_aside").size() == 1; };
  EXPECT_TRUE(WaitUntil(tells_of_it, kPatience)) << follower->Output();
  EXPECT_EQ(follower->Wait(absl::ZeroDuration()), absl::nullopt) << "the run goes on";
  const auto interrupted = follow("interrupted.log", {"--newest", "1"});
  const auto has_said_something = [&] { return absl::StrContains(interrupted->Output(), "detail"); };
  ASSERT_TRUE(WaitUntil(has_said_something, kPatience));
  interrupted->Signal(SIGINT);
  EXPECT_EQ(interrupted->Wait(kPatience), absl::optional<int>(-SIGINT));
  Ask({"stop"});
  EXPECT_EQ(follower->Wait(kPatience), absl::optional<int>(0)) << follower->Output();
  std::vector<int64_t> ids = IdsOf(follower->Output());
  EXPECT_TRUE(std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end()) << follower->Output();
  EXPECT_EQ(ids.back() - ids.front() + 1, ids.size()) << "none is missing: " << follower->Output();
}

TEST_F(Runs, AClientIsSetAsideAndReadmitted) {
  StartFleet("aside", kForever);
  ASSERT_TRUE(fleet_.WaitForRounds(5, kPatience));
  const json until = Ask({"clients", "--set-aside", "client-1", "--for", "3600", "--reason", "looks odd"});
  EXPECT_GT(until["set_aside_until_us"].get<int64_t>(), 0);
  for (const json& client : Ask({"clients"})) {
    EXPECT_EQ(client["set_aside_reason"], client["name"] == "client-1" ? "looks odd" : "") << client;
  }
  EXPECT_THAT(fleet_.Ctl({"clients", "--wide"}), HasSubstr("looks odd"));
  EXPECT_THAT(fleet_.Ctl({"clients", "--set-aside", "nobody"}), HasSubstr("no client 'nobody' ever checked in"));
  EXPECT_EQ(Ask({"clients", "--readmit", "client-1"})["set_aside_until_us"], 0);
  const int64_t committed = Committed();
  EXPECT_TRUE(fleet_.WaitForRounds(committed + 5, kPatience)) << fleet_.coordinator().Output();
}

TEST_F(Runs, ABackupOfARunningRunIsRestoredWithANewLineage) {
  StartFleet("kept", kForever);
  ASSERT_TRUE(fleet_.WaitForRounds(30, kPatience));
  const std::string backup = fleet_.directory() / "backup";
  EXPECT_GE(Ask({"backup", "--out", backup})["files"], 2);
  const int64_t saved = QueryNumber(backup + "/run.sqlite", "SELECT max(version) FROM head");
  EXPECT_GE(saved, 30);
  EXPECT_THAT(fleet_.Ctl({"backup", "--out", backup}), HasSubstr("exists; name a new directory"));
  for (const auto& entry : std::filesystem::directory_iterator(fleet_.run_state())) {
    EXPECT_FALSE(absl::StartsWith(entry.path().filename().string(), "backup-")) << entry.path();
  }
  const std::string lineage = Ask({"status"})["lineage"];
  ASSERT_TRUE(fleet_.WaitForRounds(saved + 10, kPatience)) << "the run goes on";

  const std::vector<std::string> restore = {"restore", backup, "--state", fleet_.coordinator_state(), "--force"};
  int code = -1;
  EXPECT_THAT(fleet_.Ctl(restore, &code), HasSubstr("stop the coordinator first"));
  EXPECT_EQ(code, 1);
  StopCoordinator();
  EXPECT_THAT(fleet_.Ctl({"restore", backup, "--state", fleet_.coordinator_state()}), HasSubstr("--force"));
  EXPECT_THAT(fleet_.Ctl(restore, &code), HasSubstr("new lineage"));
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(std::filesystem::exists(fleet_.coordinator_state() + "/runs/kept.before-restore/run.sqlite"));

  fleet_.StartCoordinator(fleet_.directory() / "kept.toml");
  EXPECT_NE(Ask({"status"})["lineage"], lineage);
  const auto goes_on = [&] { return Number("SELECT max(version) FROM head", "kept") >= saved + 5; };
  EXPECT_TRUE(WaitUntil(goes_on, kPatience)) << fleet_.coordinator().Output();
  EXPECT_EQ(Number("SELECT sum(resets) FROM clients", "kept"), 2) << "both had trained on";
}

TEST_F(Runs, ADeletedRunIsGoneWhileTheOtherGoesOn) {
  const std::string kept = WriteRun("kept", kForever), gone = WriteRun("gone", kForever);
  fleet_.StartCoordinator(kept, {{}, "", {"--run-file", gone}});
  for (int i = 0; i < 4; ++i) fleet_.StartClient(i, {{}, "", {"--run", i < 2 ? "kept" : "gone"}});
  ASSERT_TRUE(fleet_.WaitForRounds(5, kPatience, "kept") && fleet_.WaitForRounds(5, kPatience, "gone"));
  const std::string lineage = Ask({"status", "--run", "gone"})["lineage"];
  int code = -1;
  EXPECT_THAT(fleet_.Ctl({"run", "delete", "gone", "--yes"}, &code), HasSubstr("'gone' is active"));
  EXPECT_EQ(code, 1);
  EXPECT_EQ(HealthOf(fleet_.addresses().listen, "terse.v1.Fleet/gone"), Health::kServing);
  EXPECT_GT(Ask({"run", "delete", "gone", "--yes", "--force"})["bytes"], 4096);
  EXPECT_EQ(HealthOf(fleet_.addresses().listen, "terse.v1.Fleet/gone"), Health::kNotServing);
  EXPECT_EQ(HealthOf(fleet_.addresses().listen, ""), Health::kServing);
  for (int i : {2, 3}) {
    EXPECT_EQ(fleet_.client(i).Wait(kPatience), absl::optional<int>(0)) << fleet_.client(i).Output();
    EXPECT_THAT(fleet_.client(i).Output(), HasSubstr("the run is over: it was deleted by an operator"));
  }
  EXPECT_FALSE(std::filesystem::exists(fleet_.run_state("gone")));
  EXPECT_FALSE(std::filesystem::exists(fleet_.run_state("gone") + "~deleted"));
  const int64_t committed = Number("SELECT max(version) FROM head", "kept");
  EXPECT_TRUE(fleet_.WaitForRounds(committed + 5, kPatience, "kept")) << fleet_.coordinator().Output();

  StopCoordinator();
  fleet_.StartCoordinator(/*run_file=*/"");
  const json runs = Ask({"runs"});
  ASSERT_EQ(runs.size(), 1u) << runs;
  EXPECT_EQ(runs[0]["name"], "kept");
  // A run of that name again, with a client of the deleted one.
  Ask({"run", "create", "--run-file", WriteRun("gone", 3)});
  EXPECT_NE(Ask({"run", "status", "gone"})["lineage"], lineage);
  for (int i : {2, 3}) fleet_.StartClient(i, {{}, "", {"--run", "gone"}});
  for (int i : {2, 3}) {
    EXPECT_EQ(fleet_.client(i).Wait(kPatience), absl::optional<int>(0)) << fleet_.client(i).Output();
  }
  EXPECT_EQ(Number("SELECT sum(updates_applied) FROM clients", "gone"), 6);
}

TEST_F(Runs, APausedOneWaitsForItsStart) {
  fleet_.StartCoordinator(/*run_file=*/"");
  EXPECT_EQ(Ask({"run", "create", "--paused", "--run-file", WriteRun("later", 5)})["paused"], true);
  for (int i = 0; i < 2; ++i) fleet_.StartClient(i);
  const auto both_are_there = [this] { return Ask({"status"})["clients_connected"] == 2; };
  ASSERT_TRUE(WaitUntil(both_are_there, kPatience));
  absl::SleepFor(absl::Milliseconds(300));  // a round of this run takes a few milliseconds
  EXPECT_EQ(Number("SELECT count(*) FROM rounds"), 0);
  EXPECT_EQ(Ask({"run", "start", "later"})["state"], "active");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(fleet_.client(i).Wait(kPatience), absl::optional<int>(0)) << fleet_.client(i).Output();
  }
}

TEST_F(Runs, ASecondCoordinatorOnTheDirectoryIsRefused) {
  const std::string run_file = WriteRun("one", 10);
  fleet_.StartCoordinator(run_file);
  int code = -1;
  const std::string output =
      RunCommand({Program("grid-coordinator"), "--run-file", WriteRun("two", 10), "--state", fleet_.coordinator_state(),
                  "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"},
                 &code);
  EXPECT_EQ(code, 1);
  EXPECT_THAT(output, HasSubstr(fleet_.coordinator_state() + " is in use by another process"));
}

TEST_F(Runs, ARunThatAnEarlierReleaseKeptInTheDirectoryItselfGoesOnThere) {
  StartFleet("old", kForever);
  ASSERT_TRUE(fleet_.WaitForRounds(5, kPatience));
  StopCoordinator();
  const std::filesystem::path state = fleet_.coordinator_state();
  for (const char* name : {"run.sqlite", "run.sqlite-wal", "checkpoints"}) {
    if (std::filesystem::exists(state / "runs/old" / name)) {
      std::filesystem::rename(state / "runs/old" / name, state / name);
    }
  }
  std::filesystem::remove_all(state / "runs");
  fleet_.StartCoordinator(fleet_.directory() / "old.toml");
  const auto goes_on = [&] {
    return QueryNumber(state / "run.sqlite", "SELECT count(*) FROM rounds WHERE state = 'committed'") >= 10;
  };
  EXPECT_TRUE(WaitUntil(goes_on, kPatience)) << fleet_.coordinator().Output();
  EXPECT_FALSE(std::filesystem::exists(state / "runs"));
}

TEST_F(Runs, ANewRunBesideAnUnfinishedOneSaysSo) {
  fleet_.StartCoordinator(WriteRun("early", kForever));
  EXPECT_THAT(fleet_.coordinator().Output(), testing::Not(HasSubstr("not served")));
  StopCoordinator();
  fleet_.StartCoordinator(WriteRun("late", kForever));
  EXPECT_THAT(
      fleet_.coordinator().Output(),
      HasSubstr("holds unfinished runs that are not served, because --run-file names others: early; start without "
                "--run-file to serve all runs"));
  EXPECT_EQ(Ask({"runs"}).size(), 1u);
  fleet_.Ctl({"stop"});
  const auto is_stopped = [&] { return Ask({"runs"})[0]["state"] == "stopped"; };
  ASSERT_TRUE(WaitUntil(is_stopped, kPatience));
  StopCoordinator();
  fleet_.StartCoordinator(WriteRun("early", kForever));
  const std::string output = fleet_.coordinator().Output();
  EXPECT_EQ(output.find("not served"), output.rfind("not served")) << "the other run has ended: " << output;
  StopCoordinator();
}

TEST_F(Runs, ACoordinatorWithoutARunSaysHowToMakeOneAndItsClientsWait) {
  fleet_.StartCoordinator(/*run_file=*/"");
  EXPECT_THAT(fleet_.coordinator().Output(),
              HasSubstr("no run yet: create one with `tersectl run create --run-file FILE`"));
  EXPECT_TRUE(Ask({"runs"}).empty());
  EXPECT_THAT(fleet_.Ctl({"doctor"}), testing::ContainsRegex("free for .*/coordinator\n"));
  EXPECT_THAT(fleet_.Ctl({"doctor"}), HasSubstr("runs         ok "));
  int code = -1;
  EXPECT_THAT(fleet_.Ctl({"status"}, &code), HasSubstr("create one with `tersectl run create --run-file FILE`"));
  EXPECT_EQ(code, 1);
  for (int i = 0; i < 2; ++i) fleet_.StartClient(i);
  const auto waits = [&] { return absl::StrContains(fleet_.client(0).Output(), "no run is served here yet"); };
  EXPECT_TRUE(WaitUntil(waits, kPatience)) << fleet_.client(0).Output();
  Ask({"run", "create", "--run-file", WriteRun("late", 5)});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(fleet_.client(i).Wait(kPatience), absl::optional<int>(0)) << fleet_.client(i).Output();
  }
  EXPECT_EQ(Ask({"status"})["version"], 5);
  StopCoordinator();
}

}  // namespace
}  // namespace terse
