// Command lines from their words to what a program says about them.
#include "core/cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "core/cli/checks.h"
#include "core/cli/command_tree.h"
#include "core/cli/man_page.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// A program with two commands, one of them a group.
struct Program {
  Program() {
    app.name("prog");
    app.require_subcommand(1);
    app.fallthrough();
    app.set_version_flag("--version", "1.2.3");
    app.add_flag("--json", json);
    app.add_option("--address", address)->check(DialAddress());
    CLI::App* show = app.add_subcommand("status", "Shows");
    show->add_option("--newest", newest)->check(WholeNumber(1, 10000));
    show->add_option("--share", share)->check(Number(0, 1));
    show->add_option("--for", seconds)->check(NumberAboveZero());
    show->add_option("--format", format)->check(OneOf({"torchscript", "state", "npz"}));
    show->add_option("--bytes", bytes)->transform(AmountOfBytes());
    show->add_option("--file", file)->check(ExistingFile());
    show->add_option("--run-file", file);
    show->add_option("--folder", file)->check(ExistingFolder());
    show->add_option("--listen", address)->check(ListenAddress(UnixSockets::kAllowed));
    CLI::App* group = app.add_subcommand("pki", "Certificates");
    group->require_subcommand(1);
    group->add_subcommand("issue", "Issues")->add_option("--out", file)->required();
    AddHelpCommand(app);
  }

  CLI::App app{"Does this and that"};
  bool json = false;
  uint64_t newest = 0, bytes = 0;
  double share = 0, seconds = 0;
  std::string format, file, address;
};

struct Outcome {
  absl::optional<int> code;
  std::string out, err;
};

Outcome Read(const std::vector<const char*>& words, Program* program) {
  std::vector<const char*> argv = {"/usr/bin/prog"};
  argv.insert(argv.end(), words.begin(), words.end());
  std::ostringstream out, err;
  const absl::optional<int> code = ReadCommandLine(program->app, static_cast<int>(argv.size()), argv.data(), out, err);
  return {code, out.str(), err.str()};
}

Outcome Read(const std::vector<const char*>& words) {
  Program program;
  return Read(words, &program);
}

// The one line that a wrong command line gets.
std::string Refused(const std::vector<const char*>& words) {
  const Outcome outcome = Read(words);
  EXPECT_EQ(outcome.code, absl::optional<int>(kExitWrongUsage)) << outcome.out;
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, StartsWith("prog: "));
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  return outcome.err;
}

TEST(CommandLine, GoesOnWithWhatIsRight) {
  Program program;
  const Outcome outcome = Read({"status", "--newest", "7", "--share=0.5", "--for", "1e3", "--format", "npz", "--bytes",
                                "5MB", "--listen", "unix:/run/x", "--folder", "/", "--json"},
                               &program);
  EXPECT_EQ(outcome.code, absl::nullopt) << outcome.err;
  EXPECT_TRUE(program.json);
  EXPECT_EQ(program.newest, 7u);
  EXPECT_EQ(program.share, 0.5);
  EXPECT_EQ(program.seconds, 1000);
  EXPECT_EQ(program.format, "npz");
  EXPECT_EQ(program.bytes, 5'000'000u);
}

TEST(CommandLine, NumbersOutOfTheirRange) {
  EXPECT_EQ(Refused({"status", "--newest", "-1"}),
            "prog: --newest: -1 is too small; give a whole number, from 1 to 10000\n");
  EXPECT_EQ(Refused({"status", "--newest", "0"}),
            "prog: --newest: 0 is too small; give a whole number, from 1 to 10000\n");
  EXPECT_EQ(Refused({"status", "--newest", "10001"}),
            "prog: --newest: 10001 is too large; give a whole number, from 1 to 10000\n");
  for (const char* text : {"x", "1.5", "", "0x10", "010", "1e3", "99999999999999999999"}) {
    EXPECT_THAT(Refused({"status", "--newest", text}), HasSubstr("is no whole number")) << text;
  }
  EXPECT_EQ(Refused({"status", "--share", "1.5"}), "prog: --share: 1.5 is too large; give a number, from 0 to 1\n");
  EXPECT_THAT(Refused({"status", "--share", "-0.1"}), HasSubstr("-0.1 is too small"));
  EXPECT_THAT(Refused({"status", "--share", "nan"}), HasSubstr("'nan' is no number; give a number, from 0 to 1"));
  for (const char* text : {"0", "-1", "inf", "x"}) {
    EXPECT_THAT(Refused({"status", "--for", text}), HasSubstr("is no number above 0; give one")) << text;
  }
  for (const char* text : {"x", "-5", "5XB", "010MB", "007"}) {
    EXPECT_THAT(Refused({"status", "--bytes", text}), HasSubstr("is no amount of bytes; give a whole number")) << text;
  }
}

TEST(CommandLine, WordsThatAreNotAllowed) {
  EXPECT_EQ(Refused({"status", "--format", "onnx"}),
            "prog: --format: 'onnx' is not allowed; give torchscript, state or npz\n");
  EXPECT_EQ(
      Refused({"status", "--format", "torchscirpt"}),
      "prog: --format: 'torchscirpt' is not allowed; did you mean 'torchscript'? give torchscript, state or npz\n");
}

TEST(CommandLine, AddressesThatAreNone) {
  EXPECT_EQ(Refused({"--address", "h:99999", "status"}),
            "prog: --address: 'h:99999' has the port 99999; ports go up to 65535\n");
  EXPECT_THAT(Refused({"--address", "h:0", "status"}), HasSubstr("nobody can connect to port 0"));
  EXPECT_THAT(Refused({"--address", "unix:/x", "status"}), HasSubstr("is no address; give HOST:PORT"));
  EXPECT_THAT(Refused({"status", "--listen", "h"}), HasSubstr("'h' is no address"));
}

TEST(CommandLine, FilesThatAreNotThere) {
  EXPECT_EQ(Refused({"status", "--file", "/none"}), "prog: --file: there is no file '/none'; give one that exists\n");
  EXPECT_EQ(Refused({"status", "--file", "/"}), "prog: --file: '/' is a folder; give a file\n");
  const std::string long_name = "/" + std::string(300, 'x');
  EXPECT_EQ(Refused({"status", "--file", long_name.c_str()}),
            "prog: --file: '" + long_name + "' cannot be looked at: File name too long\n");
  EXPECT_EQ(Refused({"status", "--folder", "/none"}),
            "prog: --folder: there is no folder '/none'; give one that exists\n");
  EXPECT_EQ(Refused({"status", "--folder", "/dev/null"}), "prog: --folder: '/dev/null' is no folder; give a folder\n");
}

TEST(CommandLine, UnknownWordsGetASuggestion) {
  EXPECT_EQ(Refused({"statsu"}), "prog: there is no command 'statsu'; did you mean 'status'? see `prog --help`\n");
  EXPECT_EQ(Refused({"frobnicate"}), "prog: there is no command 'frobnicate'; see `prog --help`\n");
  EXPECT_EQ(Refused({"pki", "isue"}),
            "prog: there is no command 'pki isue'; did you mean 'issue'? see `prog pki --help`\n");
  EXPECT_EQ(Refused({"status", "--newset", "3"}),
            "prog: there is no option --newset; did you mean '--newest'? see `prog status --help`\n");
  EXPECT_EQ(Refused({"status", "--jsno"}),
            "prog: there is no option --jsno; did you mean '--json'? see `prog status --help`\n")
      << "the program's options, too";
  EXPECT_THAT(Refused({"status", "--frmat=npz"}), HasSubstr("there is no option --frmat; did you mean '--format'?"));
  for (const char* word : {"--run", "--run=x.toml"}) {
    EXPECT_EQ(Refused({"status", word, "x.toml"}),
              "prog: there is no option --run; did you mean '--run-file'? see `prog status --help`\n");
  }
  EXPECT_EQ(Refused({"status", "-x"}), "prog: there is no option -x; see `prog status --help`\n");
  EXPECT_EQ(Refused({"status", "more"}),
            "prog: `prog status` takes no further word, and got 'more'; see `prog status --help`\n");
}

TEST(CommandLine, WhatIsMissing) {
  EXPECT_EQ(Refused({"pki", "issue"}), "prog: --out is required; see `prog pki issue --help`\n");
  EXPECT_EQ(Refused({"pki", "issue", "--out"}), "prog: --out needs a value; see `prog pki issue --help`\n");
}

TEST(CommandLine, WithoutACommandThereIsHelp) {
  const Outcome bare = Read({});
  EXPECT_EQ(bare.code, absl::optional<int>(kExitWrongUsage));
  EXPECT_THAT(bare.err, AllOf(HasSubstr("Usage: prog"), HasSubstr("status"), HasSubstr("pki")));
  EXPECT_THAT(bare.out, IsEmpty());
  EXPECT_THAT(Read({"pki"}).err, AllOf(HasSubstr("Usage: prog pki"), HasSubstr("issue"), Not(HasSubstr("status"))));
}

TEST(CommandLine, HelpAndVersion) {
  EXPECT_EQ(Read({"--version"}).code, absl::optional<int>(0));
  EXPECT_EQ(Read({"--version"}).out, "1.2.3\n");
  const Outcome help = Read({"help"});
  EXPECT_EQ(help.code, absl::optional<int>(0));
  EXPECT_EQ(help.out, Read({"--help"}).out);
  EXPECT_THAT(help.out, HasSubstr("Usage: prog"));
  EXPECT_EQ(Read({"help", "status"}).out, Read({"status", "--help"}).out);
  EXPECT_EQ(Read({"help", "pki", "issue"}).out, Read({"pki", "issue", "--help"}).out);
  EXPECT_THAT(Read({"help", "pki", "issue"}).out, HasSubstr("Usage: prog pki issue"));
  EXPECT_EQ(Refused({"help", "pki", "isue"}),
            "prog: there is no command 'pki isue'; did you mean 'issue'? see `prog pki --help`\n");
}

TEST(CommandTree, TellsAllowedValues) {
  const Program program;
  const CLI::App* status = SubcommandsOf(program.app).front();
  EXPECT_THAT(AllowedValues(*status->get_option("--format")), ElementsAre("torchscript", "state", "npz"));
  EXPECT_THAT(AllowedValues(*status->get_option("--newest")), IsEmpty());
}

// A program without commands, like the daemons.
struct Daemon {
  Daemon() {
    app.name("terse-daemon");
    app.add_option("--state", state, "directory's \\ state")->required();
    app.add_option("--mode", mode, "how")->check(OneOf({"fast", "slow"}))->capture_default_str();
    app.add_option("FILE", file, "the file")->required();
    app.footer("Exit codes: 0 ok, 1 failed.");
    AddManFlag(app, kDaemons);
  }

  CLI::App app{"Waits for those who come."};
  std::string state, mode = "fast", file;
};

TEST(ManPage, OfADaemonWithoutItsRequiredOptions) {
  Daemon daemon;
  std::ostringstream out, err;
  const char* const argv[] = {"terse-daemon", "--man"};
  EXPECT_EQ(ReadCommandLine(daemon.app, 2, argv, out, err), absl::optional<int>(0)) << err.str();
  EXPECT_EQ(out.str(), ManPage(daemon.app, kDaemons));
  EXPECT_THAT(out.str(), StartsWith(".TH TERSE\\-DAEMON 8 \"\" \"Terse "));
  EXPECT_THAT(out.str(), HasSubstr("\nterse\\-daemon \\- \\&Waits for those who come\n.SH SYNOPSIS\n"));
  EXPECT_THAT(out.str(), AllOf(HasSubstr("\\fB\\&\\-\\-state\\fR"), HasSubstr("\\fI\\&FILE\\fR"),
                               HasSubstr("directory\\(aqs \\e state"), HasSubstr("[\\&fast]"),
                               HasSubstr(".SH EXIT STATUS\n\\&Exit codes: 0 ok, 1 failed.\n")));
  EXPECT_THAT(out.str(), Not(AnyOf(HasSubstr("COMMANDS"), HasSubstr("Every command"))));
  const char* const without[] = {"terse-daemon"};
  EXPECT_EQ(ReadCommandLine(daemon.app, 1, without, out, err), absl::optional<int>(kExitWrongUsage));
}

}  // namespace
}  // namespace terse
