// `tersectl doctor --state` beside real processes: while they write, after a power switch, and before they go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/e2e/fleet_processes.h"
#include "tests/testing/paths.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kRun[] = R"(name = 'r'
[train]
local_steps = 1
optimizer.learning_rate = 1.0
[codec]
name = 'sbc'
density = 0.02
[rounds]
count = 1000000
clients = 2
evaluate_every = 1000000
[checkpoints]
every = 20
)";

// Mode, time of the last change and contents of all that a directory holds.
std::map<std::string, std::string> Tree(const std::string& directory) {
  std::map<std::string, std::string> tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string path = entry.path().string();
    struct stat info = {};
    EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
    std::string& text = tree[path] =
        absl::StrCat(info.st_mode, " ", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec, " ");
    if (!entry.is_regular_file()) continue;
    std::ifstream file(path, std::ios::binary);
    text.append(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return tree;
}

class Doctor : public testing::Test {
 protected:
  std::string Examine(const std::string& state) {
    int code = -1;
    const std::string output = fleet_.Ctl({"doctor", "--state", state}, &code);
    EXPECT_EQ(code, 0) << output;
    EXPECT_THAT(output, Not(HasSubstr("->"))) << "nothing is to be done";
    return output;
  }

  FleetProcesses fleet_{Program("grid-coordinator"), Program("grid-client")};
};

TEST_F(Doctor, LooksAtARunningFleetAndAtWhatAPowerSwitchLeaves) {
  const std::string run_file = fleet_.directory() / "run.toml";
  WriteText(run_file, kRun);
  fleet_.StartCoordinator(run_file);
  for (int i = 0; i < 2; ++i) fleet_.StartClient(i);
  for (int64_t rounds = 10; rounds <= 50; rounds += 10) {
    ASSERT_TRUE(fleet_.WaitForRounds(rounds, kPatience)) << fleet_.coordinator().Output();
    const std::string coordinator = Examine(fleet_.coordinator_state());
    EXPECT_THAT(coordinator, HasSubstr("yes, by a process that runs"));
    EXPECT_THAT(coordinator, HasSubstr("active, version "));
    EXPECT_THAT(Examine(fleet_.client_state(0)), HasSubstr("all whole"));
  }
  for (int i = 0; i < 2; ++i) fleet_.client(i).Kill();
  fleet_.coordinator().Kill();

  for (const std::string& state : {fleet_.coordinator_state(), fleet_.client_state(0), fleet_.client_state(1)}) {
    const auto before = Tree(state);
    EXPECT_THAT(Examine(state), testing::ContainsRegex("in use +ok +no\n")) << state;
    EXPECT_EQ(Tree(state), before);
  }

  const int64_t committed = QueryNumber(fleet_.database(), "SELECT max(version) FROM head");
  fleet_.StartCoordinator(run_file);
  for (int i = 0; i < 2; ++i) fleet_.StartClient(i);
  EXPECT_TRUE(fleet_.WaitForRounds(committed + 10, kPatience)) << fleet_.coordinator().Output();
  EXPECT_EQ(QueryNumber(fleet_.database(), "SELECT sum(resets) FROM clients"), 0) << "nothing was lost";
}

}  // namespace
}  // namespace terse
