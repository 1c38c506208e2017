// Tests the files that tersectl makes from its own command line: the completion, which a real bash runs, and the manual
// page, which groff sets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tersectl/cli.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/paths.h"
#include "tests/testing/temp_directory.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ShellTest : public ::testing::Test {
 protected:
  // Returns what a shell command prints on both streams; fails the test when the command fails.
  std::string Run(const std::string& command) {
    FILE* const pipe = popen(absl::StrCat("exec 2>&1; ", command).c_str(), "r");
    std::string output;
    char buffer[4096];
    for (size_t count; (count = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) output.append(buffer, count);
    EXPECT_EQ(pclose(pipe), 0) << command << "\n" << output;
    return output;
  }
  bool Has(const std::string& program) {
    return std::system(absl::StrCat("command -v ", program, " > /dev/null").c_str()) == 0;
  }
  // Writes what tersectl prints.
  std::string File(const std::string& name, const std::vector<std::string>& arguments) {
    const CtlOutcome outcome = Invoke(arguments);
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    const std::string path = absl::StrCat(directory_.path(), "/", name);
    std::ofstream(path) << outcome.out;
    return path;
  }
  // Returns the words that bash offers for the last word, after the others.
  std::vector<std::string> Complete(const std::vector<std::string>& words, const std::string& setup = "") {
    const std::string script = File("tersectl.bash", {"completion", "bash"});
    const std::string quoted = absl::StrCat("tersectl '", absl::StrJoin(words, "' '"), "'");
    std::ofstream(script, std::ios::app) << setup << "\nCOMP_WORDS=(" << quoted << ")\nCOMP_CWORD=" << words.size()
                                         << "\n_tersectl\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
    return absl::StrSplit(Run(absl::StrCat("bash -euo pipefail ", script, " || test $? = 1")), '\n', absl::SkipEmpty());
  }

  TempDirectory directory_;
};

TEST_F(ShellTest, BashCompletesCommandsAndOptions) {
  EXPECT_THAT(Complete({"ev"}), ElementsAre("events"));
  EXPECT_THAT(Complete({""}), Contains("doctor"));
  EXPECT_THAT(Complete({"events", "--fo"}), ElementsAre("--follow"));
  EXPECT_THAT(Complete({"pki", "iss"}), ElementsAre("issue"));
  EXPECT_THAT(Complete({"pki", "issue", "client", "a", "--ho"}), ElementsAre("--host"));
  EXPECT_THAT(Complete({"status", "--js"}), ElementsAre("--json")) << "the program's options, too";
  EXPECT_THAT(Complete({"status", "--fo"}), IsEmpty()) << "another command's";
}

TEST_F(ShellTest, BashTakesAnOptionsValueForNoCommand) {
  EXPECT_THAT(Complete({"--run", "events", "--follo"}), IsEmpty());
  EXPECT_THAT(Complete({"--run", "pki", "events", "--follo"}), ElementsAre("--follow"));
  EXPECT_THAT(Complete({"--run", "ev"}), IsEmpty()) << "files are offered there";
}

TEST_F(ShellTest, BashKnowsWhatAnOptionAllows) {
  EXPECT_THAT(Complete({"export", "--format", "t"}), ElementsAre("torchscript", "tensorboard"));
  EXPECT_THAT(Complete({"export", "--format", "=", "n"}), ElementsAre("npz")) << "as bash splits --format=n";
  EXPECT_THAT(Complete({"pki", "issue", "o"}), ElementsAre("observer", "operator"));
  EXPECT_THAT(Complete({"pki", "issue", "client", "o"}), IsEmpty()) << "that is a name";
  EXPECT_THAT(Complete({"completion", ""}), Contains("zsh"));
  EXPECT_THAT(Complete({"help", "do"}), ElementsAre("doctor"));
}

TEST_F(ShellTest, BashOffersTheColumnsOfLists) {
  EXPECT_THAT(Complete({"rounds", "--sort", "test"}), ElementsAre("test_loss"));
  EXPECT_THAT(Complete({"clients", "--columns", "re"}), ElementsAre("reliability", "resets", "residual"));
  EXPECT_THAT(Complete({"clients", "--columns", "client,state,samp"}), ElementsAre("client,state,samples"));
  EXPECT_THAT(Complete({"run", "list", "--where", "acc"}), ElementsAre("accuracy"));
  EXPECT_THAT(Complete({"pki", "list", "--sort", "ser"}), ElementsAre("serial"));
  EXPECT_THAT(Complete({"metrics", "--sort", "r"}), IsEmpty()) << "only its rows tell";
}

TEST_F(ShellTest, BashAsksForTheRuns) {
  FakeAdminServer server;
  for (const char* name : {"demo", "digits-2", "$(touch owned)", "other"}) server.runs.emplace_back().set_name(name);
  const std::string programs = std::filesystem::path(Program("tersectl")).parent_path();
  const std::string found = absl::StrCat("PATH=", programs, ":$PATH\n");
  const std::string typed = absl::StrCat(found, "COMP_LINE='tersectl --admin ", server.address(), " '");
  const std::string environment = absl::StrCat(found, "export TERSE_ADMIN=", server.address());
  // The script gives the coordinator a second, in which a busy machine may not answer.
  using Words = std::vector<std::string>;
  const auto offers = [this](const Words& words, const std::string& setup, const Words& wanted) {
    return WaitUntil([&] { return Complete(words, setup) == wanted; }, absl::Seconds(30));
  };
  EXPECT_TRUE(offers({"run", "pause", "d"}, typed, {"demo", "digits-2"}));
  EXPECT_TRUE(offers({"run", "pause", "d"}, environment, {"demo", "digits-2"}));
  EXPECT_TRUE(offers({"run", "compare", "demo", "digits-2", "o"}, environment, {"other"}));
  EXPECT_TRUE(offers({"--run", "o"}, environment, {"other"}));
  EXPECT_TRUE(offers({"--admin", "127.0.0.1", ":", "1", "run", "delete", "de"}, environment, {"demo"}));
  EXPECT_THAT(Complete({"run", "status", "$"}, environment), IsEmpty()) << "a shell would run it";
  EXPECT_THAT(Complete({"run", "create", "--run-file", ""}, environment), IsEmpty()) << "files are offered there";
  EXPECT_THAT(Complete({"run", "pause", "d"}, absl::StrCat(found, "export TERSE_ADMIN=127.0.0.1:1")), IsEmpty());
}

// Every word that the help of a command names is completed after it.
TEST_F(ShellTest, BashKnowsWhatHelpKnows) {
  const std::vector<std::vector<std::string>> commands = {
      {}, {"rounds"}, {"clients"}, {"events"}, {"run", "create"}, {"restore"}, {"pki", "revoke"}, {"doctor"}};
  for (std::vector<std::string> command : commands) {
    std::vector<std::string> help = command;
    help.push_back("--help");
    const std::string text = Invoke(help).out;
    command.push_back("");
    const std::vector<std::string> offered = Complete(command);
    int options = 0;
    for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \n,="), absl::SkipEmpty())) {
      if (word.substr(0, 2) != "--") continue;
      ++options;
      EXPECT_THAT(offered, Contains(std::string(word))) << absl::StrJoin(command, " ");
    }
    EXPECT_GT(options, 0) << text;
  }
}

TEST_F(ShellTest, ZshGetsTheSameFunction) {
  const std::string bash = Invoke({"completion", "bash"}).out, zsh = Invoke({"completion", "zsh"}).out;
  EXPECT_THAT(zsh, StartsWith("#compdef tersectl\n"));
  EXPECT_THAT(zsh, HasSubstr("bashcompinit"));
  EXPECT_THAT(zsh, HasSubstr(bash));
  EXPECT_EQ(Invoke({"completion", "fish"}).code, kExitUsage);
  if (!Has("zsh")) GTEST_SKIP() << "there is no zsh here to read it";
  EXPECT_THAT(Run(absl::StrCat("zsh -n ", File("_tersectl", {"completion", "zsh"}))), IsEmpty());
}

TEST_F(ShellTest, TheManualPageHasEveryCommandAndNoWarning) {
  const std::string page = Invoke({"man"}).out;
  EXPECT_THAT(page, StartsWith(".TH TERSECTL 1 "));
  EXPECT_THAT(page, HasSubstr("\\&pki issue"));
  EXPECT_THAT(page, HasSubstr("\\-\\-follow"));
  EXPECT_THAT(page, HasSubstr(".SH EXIT STATUS"));
  EXPECT_THAT(page, HasSubstr("\ntersectl \\- \\&Looks at a Terse coordinator, and steers"));
  if (!Has("groff")) GTEST_SKIP() << "there is no groff here";
  const std::string file = File("tersectl.1", {"man"});
  EXPECT_THAT(Run(absl::StrCat("groff -man -Tutf8 -ww ", file, " > /dev/null")), IsEmpty());
  const std::string set = Run(absl::StrCat("groff -man -Tascii -P-c -P-b -P-u ", file));
  EXPECT_THAT(set, HasSubstr("pki revoke"));
  EXPECT_THAT(set, HasSubstr("Open no new round until `resume`"));
}

}  // namespace
}  // namespace terse
