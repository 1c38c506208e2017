#include "core/log/log.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/cli/log_options.h"
#include "core/log/recent_lines.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

constexpr absl::string_view kComponents[] = {"engine", "tls", "web"};

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { ConfigureLog({}); }

  void Configure(LogFormat format, const std::string& levels = "info") {
    ConfigureLog({format, *ParseLogLevels(levels, kComponents)}, &out_);
  }
  // Returns the lines that were written since the last call.
  std::vector<std::string> Lines() {
    const std::string text = out_.str();
    out_.str("");
    if (text.empty()) return {};
    EXPECT_EQ(text.back(), '\n');
    return absl::StrSplit(text.substr(0, text.size() - 1), '\n');
  }
  std::string Line() {
    const std::vector<std::string> lines = Lines();
    EXPECT_THAT(lines, SizeIs(1));
    return lines.empty() ? "" : lines.front();
  }
  nlohmann::json Json() { return nlohmann::json::parse(Line()); }
  // The components whose lines of `level` are written.
  std::vector<std::string> WhoSpeaksAt(LogLevel level) {
    std::vector<std::string> who;
    for (const absl::string_view component : kComponents) {
      Log(level, component, {}, "hello");
      const bool spoke = !Lines().empty();
      EXPECT_EQ(IsLogged(level, component), spoke);
      if (spoke) who.emplace_back(component);
    }
    return who;
  }

  std::ostringstream out_;
};

TEST_F(LogTest, TheNewestLinesAreKept) {
  Configure(LogFormat::kJson, "info,tls=warn");
  Log(LogLevel::kInfo, "web", {}, "before anybody asked");
  EXPECT_THAT(RecentLines(), IsEmpty());
  KeepRecentLines(2);
  Log(LogLevel::kInfo, "web", {}, "too old");
  Log(LogLevel::kInfo, "engine", {"digits", 3, {}, 7}, std::string(3000, 'x'));
  Log(LogLevel::kInfo, "tls", {}, "below its level");
  Log(LogLevel::kError, "tls", {}, "a\nb");
  const std::vector<LogLine> lines = RecentLines();
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].message, std::string(kLongestRecentLine, 'x'));
  EXPECT_EQ(lines[0].run, "digits");
  EXPECT_EQ(lines[0].round, 3);
  EXPECT_EQ(lines[0].client, "7");
  EXPECT_EQ(lines[1].message, "a\\nb");
  EXPECT_EQ(lines[1].component, "tls");
  EXPECT_EQ(LogLevelName(lines[1].level), "error");
  EXPECT_EQ(lines[1].id, lines[0].id + 1);
  KeepRecentLines(0);
  EXPECT_THAT(RecentLines(), IsEmpty());
}

TEST_F(LogTest, HumanLine) {
  Configure(LogFormat::kHuman);
  Log(LogLevel::kWarn, "engine", {"digits", 3, "client-0", 7}, "it was late");
  EXPECT_THAT(Line(), MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3} warn engine "
                                   "\\[run=digits round=3 client=client-0\\]: it was late"));
  Log(LogLevel::kInfo, "engine", {{}, 0, {}, 0}, "it has an index");
  EXPECT_THAT(Line(), EndsWith(" info engine [client=0]: it has an index"));
  Log(LogLevel::kError, "tls", {}, "nothing is known");
  EXPECT_THAT(Line(), EndsWith(" error tls: nothing is known"));
}

TEST_F(LogTest, JsonLineHasWhatIsKnownAndNothingElse) {
  setenv("TZ", "ELSEWHERE-9", 1);
  tzset();
  Configure(LogFormat::kJson, "debug");
  Log(LogLevel::kWarn, "engine", {"digits", 3, "client-0", 7}, "it was late");
  nlohmann::json line = Json();
  const std::string time = line.at("time");
  line.erase("time");
  EXPECT_EQ(line, nlohmann::json::parse(R"({"level": "warn", "component": "engine", "run": "digits", "round": 3,
                                            "client": "client-0", "message": "it was late"})"));
  EXPECT_THAT(time, MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z"));
  absl::Time parsed;
  std::string error;
  ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full, time, &parsed, &error)) << error;
  EXPECT_LT(absl::AbsDuration(absl::Now() - parsed), absl::Minutes(1)) << "UTC, whatever the machine's zone is";

  Log(LogLevel::kDebug, "tls", {{}, 0, {}, 7}, "an index");
  line = Json();
  EXPECT_EQ(line.at("client"), 7);
  EXPECT_EQ(line.at("level"), "debug");
  EXPECT_FALSE(line.contains("run") || line.contains("round"));
  Log(LogLevel::kError, "tls", {}, "");
  line = Json();
  EXPECT_EQ(line.at("message"), "");
  EXPECT_FALSE(line.contains("client"));
}

TEST_F(LogTest, LevelsByComponent) {
  Configure(LogFormat::kHuman);
  EXPECT_THAT(WhoSpeaksAt(LogLevel::kDebug), IsEmpty());
  EXPECT_THAT(WhoSpeaksAt(LogLevel::kInfo), ElementsAre("engine", "tls", "web"));
  Configure(LogFormat::kHuman, "warn,engine=debug,tls=info");
  EXPECT_THAT(WhoSpeaksAt(LogLevel::kDebug), ElementsAre("engine"));
  EXPECT_THAT(WhoSpeaksAt(LogLevel::kInfo), ElementsAre("engine", "tls"));
  EXPECT_THAT(WhoSpeaksAt(LogLevel::kWarn), ElementsAre("engine", "tls", "web"));
  Configure(LogFormat::kJson, "engine=error");
  EXPECT_THAT(WhoSpeaksAt(LogLevel::kInfo), ElementsAre("tls", "web"));
  EXPECT_THAT(WhoSpeaksAt(LogLevel::kError), ElementsAre("engine", "tls", "web"));
}

// A peer that chooses a name or the text of an error cannot write a line of its own, and leaves no bytes that a reader
// of UTF-8 or a terminal stumbles over.
TEST_F(LogTest, NobodyForgesALine) {
  const std::string forged = "x\n2026-01-01 00:00:00.000 info engine: all is well\r\x1b[2J\x7f";
  for (const LogFormat format : {LogFormat::kHuman, LogFormat::kJson}) {
    Configure(format);
    Log(LogLevel::kInfo, "web", {forged, 1, forged}, forged);
    const std::string line = Line();
    for (const char c : line) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << line;
    if (format == LogFormat::kJson) {
      const nlohmann::json json = nlohmann::json::parse(line);
      EXPECT_EQ(json.at("message"), forged);
      EXPECT_EQ(json.at("client"), forged);
    } else {
      EXPECT_THAT(line,
                  AllOf(HasSubstr("[run=\"x\\n2026-01-01 00"), HasSubstr("all is well\\u000d\\u001b[2J\\u007f\"")));
    }
  }
  // A field ends where it says.
  Configure(LogFormat::kHuman);
  Log(LogLevel::kInfo, "web", {{}, 0, "a]: joined \"b"}, "left");
  EXPECT_THAT(Line(), EndsWith(" info web [client=\"a]: joined \\\"b\"]: left"));
}

TEST_F(LogTest, TextStaysReadableAndBytesThatAreNoneAreReplaced) {
  Configure(LogFormat::kHuman);
  Log(LogLevel::kInfo, "web", {}, "Zürich, 東京");
  EXPECT_THAT(Line(), EndsWith("web: Zürich, 東京"));
  // A new line and a terminal's command in one character, a separator of lines, and a turn of the direction.
  Log(LogLevel::kInfo, "web", {}, "a\u0085b\u009bc\u2028d\u202ee");
  EXPECT_THAT(Line(), EndsWith("web: a\\u0085b\\u009bc\\u2028d\\u202ee"));
  const std::string broken("a\xff\xc3(\xed\xa0\x80\x00z\xe2\x82", 11);
  Log(LogLevel::kInfo, "web", {}, broken);
  std::string line = Line();
  EXPECT_THAT(line, AllOf(HasSubstr("web: a\uFFFD"), HasSubstr("\\u0000z")));
  EXPECT_NO_THROW(nlohmann::json(line).dump()) << "valid UTF-8";

  Configure(LogFormat::kJson);
  Log(LogLevel::kInfo, "web", {broken, 0, broken}, broken);
  line = Line();
  const std::string message = nlohmann::json::parse(line).at("message");
  EXPECT_THAT(message, AllOf(HasSubstr("a\uFFFD"), HasSubstr(std::string("\0z", 2))));
  Log(LogLevel::kInfo, "web", {}, "Zürich {} \" \\ %v");
  EXPECT_EQ(Json().at("message"), "Zürich {} \" \\ %v");
}

// The options as a daemon parses them; nothing when it goes on, else what it says.
std::string Parse(std::vector<std::string> arguments, LogSettings* settings) {
  CLI::App app;
  AddLogOptions(app, kComponents, settings);
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    EXPECT_NE(error.get_exit_code(), 0);
    return error.what();
  }
  return "";
}

TEST(LogOptions, AreParsed) {
  LogSettings settings;
  EXPECT_EQ(Parse({}, &settings), "");
  EXPECT_EQ(settings.format, LogFormat::kHuman);
  EXPECT_EQ(settings.levels.Of("tls"), LogLevel::kInfo);
  EXPECT_EQ(Parse({"--log-format", "json", "--log-level", "tls=error,warn"}, &settings), "");
  EXPECT_EQ(settings.format, LogFormat::kJson);
  EXPECT_EQ(settings.levels.Of("tls"), LogLevel::kError);
  EXPECT_EQ(settings.levels.Of("web"), LogLevel::kWarn);
}

TEST(LogOptions, ErrorsNameWhatThereIs) {
  LogSettings settings;
  EXPECT_THAT(Parse({"--log-level", "info,engin=debug"}, &settings),
              HasSubstr("--log-level: there is no component 'engin'; the components are engine, tls, web"));
  for (const std::string unknown : {"loud", "tls=loud", "tls=", "info,", "INFO", "tls=debug=info"}) {
    EXPECT_THAT(Parse({absl::StrCat("--log-level=", unknown)}, &settings),
                HasSubstr("is no level; the levels are debug, info, warn and error"))
        << unknown;
  }
  EXPECT_THAT(Parse({"--log-level", "=debug"}, &settings), HasSubstr("there is no component ''"));
  EXPECT_THAT(Parse({"--log-level", "info,warn"}, &settings), HasSubstr("two levels for all components"));
  EXPECT_THAT(Parse({"--log-level", "tls=info,tls=warn"}, &settings), HasSubstr("two levels for tls"));
  EXPECT_THAT(Parse({"--log-format", "xml"}, &settings),
              AllOf(HasSubstr("--log-format"), HasSubstr("give human or json")));
  EXPECT_EQ(settings.levels.standard, LogLevel::kInfo) << "an error changes nothing";
}

}  // namespace
}  // namespace terse
