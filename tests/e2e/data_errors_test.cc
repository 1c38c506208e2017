// Data that do not fit the run, on either side: one line says which file and what to do.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/fleet_processes.h"
#include "tests/testing/paths.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kDataRun[] =
    "name = 'errors'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 0.001\n[codec]\nname = 'sbc'\n"
    "[rounds]\ncount = 1000000\nclients = 2\n";

// A run on CSV files of two features and three classes, with a coordinator whose data fit.
class OwnData : public testing::Test {
 protected:
  void SetUp() override {
    WriteText(run_file_,
              absl::StrCat(kDataRun,
                           "[model]\nname = 'perceptron'\ninputs = 2\nclasses = 3\n[data]\nname = 'csv'\ntrain = "
                           "'train.csv'\ntest = 'test.csv'\npartition = 'all'\n"
                           "columns = ['x*:number', 'kind:class=a|b|c']\n"));
    std::filesystem::create_directories(data_);
  }
  std::string CoordinatorOutput(int* code) {
    return RunCommand({Program("terse-coordinator"), "--run-file", run_file_, "--state", fleet_.coordinator_state(),
                       "--data", data_, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"},
                      code);
  }
  // With a folder for temporary files that is the test's own.
  std::string CheckOutput(int* code, const std::vector<std::string>& data) {
    std::filesystem::create_directories(temporary_);
    std::vector<std::string> command = {"/usr/bin/env", "TMPDIR=" + temporary_, Program("terse-coordinator"),
                                        "--check",      "--run-file",           run_file_};
    command.insert(command.end(), data.begin(), data.end());
    return RunCommand(command, code);
  }

  FleetProcesses fleet_{Program("terse-coordinator"), Program("terse-client")};
  const std::string run_file_ = fleet_.directory() / "run.toml";
  const std::string data_ = fleet_.directory() / "data";
  const std::string temporary_ = fleet_.directory() / "temporary";
};

TEST_F(OwnData, ThatDoesNotFitTheModelEndsAClientWithOneLineBeforeItIsReady) {
  WriteText(data_ + "/test.csv", "x1,x2,kind\n1,2,a\n3,4,c\n");
  fleet_.StartCoordinator(run_file_, {{}, "", {"--data", data_}});
  const std::string own = fleet_.directory() / "own";
  std::filesystem::create_directories(own);
  WriteText(own + "/train.csv", "x1,x2,x3,kind\n1,2,3,a\n");
  fleet_.StartClient(0, {{}, "", {"--data", own}});
  EXPECT_EQ(fleet_.client(0).Wait(kPatience), absl::optional<int>(1));
  const std::string output = fleet_.client(0).Output();
  EXPECT_THAT(output,
              HasSubstr(own + "/train.csv, example 0: the example has 3 numbers, and model 'perceptron' takes 2"));
  EXPECT_THAT(output, ::testing::Not(HasSubstr("LibTorch")));
  EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 2) << "the connection ends, and the reason: " << output;
  // The coordinator hears that it failed, and nothing of its data.
  const auto events = [this](const std::string& condition) {
    return QueryNumber(fleet_.database(), "SELECT count(*) FROM events WHERE kind = 'client_failed'" + condition);
  };
  EXPECT_TRUE(WaitUntil([&] { return events("") == 1; }, kPatience));
  EXPECT_EQ(events(" AND detail = 'its trainer refused the run or its data; its own log says why'"), 1);
}

TEST_F(OwnData, AMisspeltTestSetIsNamedWithWhatIsThere) {
  WriteText(data_ + "/tset.csv", "x1,x2,kind\n1,2,a\n");
  WriteText(data_ + "/train.csv", "x1,x2,kind\n1,2,a\n");
  int code = -1;
  EXPECT_THAT(CoordinatorOutput(&code),
              HasSubstr("there is no test set to evaluate on: data.test is 'test.csv', and there is neither " + data_ +
                        "/test.csv nor " + data_ + "/test.csv.gz; the folder " + data_ + " holds train.csv, tset.csv"));
  EXPECT_EQ(code, 1);
}

TEST_F(OwnData, IsCheckedByACoordinatorThatServesNobody) {
  int code = -1;
  EXPECT_THAT(CheckOutput(&code, {"--data", data_}), HasSubstr("data.test is 'test.csv', and there is neither"));
  EXPECT_EQ(code, 1);
  WriteText(data_ + "/test.csv", "x1,x2,kind\n1,2,a\n3,4,c\n");
  EXPECT_THAT(CheckOutput(&code, {"--data", data_}),
              AllOf(StartsWith("run errors can be served: "), HasSubstr("codec sbc, aggregation imputed_mean\n")));
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(temporary_));
}

// The store takes a message of any size, so the check says what it costs and which setting costs less.
TEST_F(OwnData, TheCheckForetellsMessagesThatAreLarge) {
  WriteText(
      run_file_,
      "name = 'errors'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 0.001\n[model]\n"
      "name = 'perceptron'\n[codec]\nname = 'dense'\ndownstream = 'forward'\n[rounds]\ncount = 1\nclients = 50000\n");
  int code = -1;
  const std::string said = CheckOutput(&code, {});
  EXPECT_THAT(said, HasSubstr("receives about 15.9 GB a round (of 50000 updates)"));
  EXPECT_THAT(said, HasSubstr("with codec.downstream = 'auto' it would receive about 265 kB"));
  EXPECT_EQ(code, 0);
}

TEST_F(OwnData, ARunWithAModuleIsCheckedWhenItIsCreated) {
  WriteText(run_file_, absl::StrCat(kDataRun, "[model]\nname = 'torchscript'\n"));
  int code = -1;
  EXPECT_THAT(CheckOutput(&code, {}), HasSubstr("checked together with its file, by `tersectl run create"));
  EXPECT_EQ(code, 1);
}

TEST_F(OwnData, TheCheckNeedsARunFileAndTheStartAStateDirectory) {
  int code = -1;
  EXPECT_THAT(RunCommand({Program("terse-coordinator"), "--check"}, &code), HasSubstr("--run-file"));
  EXPECT_EQ(code, 2);
  EXPECT_THAT(RunCommand({Program("terse-coordinator"), "--run-file", run_file_}, &code), HasSubstr("--state"));
  EXPECT_EQ(code, 2);
}

}  // namespace
}  // namespace terse
