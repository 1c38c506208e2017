// The screens of `tersectl watch`: whole ones against tests/golden/watch_*.txt, and what no name may do to them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "tersectl/braille_chart.h"
#include "tersectl/full_screen.h"
#include "tersectl/screen_row.h"
#include "tersectl/watch_screen.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kSecond = 1000000;

v1::Round ScreenRound(uint64_t id, const std::string& state) {
  v1::Round round;
  round.set_id(id);
  round.set_state(state);
  round.set_opened_us(static_cast<int64_t>(id) * 10 * kSecond);
  if (state != "committed") return round;
  round.set_closed_us(round.opened_us() + 8 * kSecond);
  round.set_committed_us(round.opened_us() + 9 * kSecond);
  round.set_updates(3);
  round.set_train_loss(2.0 / static_cast<double>(id));
  round.set_dense_bytes_up(5172960);
  round.set_payload_bytes_up(14000);
  round.set_wire_bytes_up(15200);
  round.set_wire_bytes_down(61000);
  if (id % 2 == 1) {
    round.set_accuracy(1 - 0.8 / static_cast<double>(id));
    round.set_test_loss(1.8 / static_cast<double>(id));
  }
  return round;
}

v1::Client MakeClient(uint32_t index, const std::string& name, const std::string& state) {
  v1::Client client;
  client.set_index(index);
  client.set_name(name);
  client.set_state(state);
  client.set_connected(state != "away");
  client.set_steps_done(state == "training" ? 7 : 0);
  client.set_updates_applied(11 - index);
  client.set_wire_bytes_up(60000 + index);
  client.set_last_seen_us(100 * kSecond);
  return client;
}

v1::Event MakeEvent(uint64_t id, const std::string& kind, int64_t client, const std::string& detail) {
  v1::Event event;
  event.set_id(id);
  event.set_time_us(static_cast<int64_t>(id) * 40 * kSecond);
  event.set_kind(kind);
  event.set_client(client);
  if (client >= 0) event.set_client_name("lima-1");
  event.set_round(id);
  event.set_detail(detail);
  return event;
}

// In its twelfth round, two of whose clients have not delivered.
WatchView RunUnderWay() {
  WatchView view;
  view.status.set_run("lenet5-sbc2");
  view.status.set_state("active");
  view.status.set_phase("collecting updates");
  view.status.set_rounds_total(40);
  view.status.set_clients_connected(4);
  view.status.set_clients_wanted(3);
  view.status.set_parameters(431080);
  view.status.mutable_config()->mutable_train()->set_local_steps(10);
  for (uint64_t id = 1; id <= 11; ++id) view.rounds.push_back(ScreenRound(id, id == 6 ? "aborted" : "committed"));
  view.rounds.push_back(ScreenRound(12, "open"));
  view.clients = {MakeClient(0, "berlin-1", "waiting"), MakeClient(1, "oslo-1", "training"),
                  MakeClient(2, "東京-1", "training"), MakeClient(3, "lima-1", "set aside"),
                  MakeClient(4, "cairo-1", "away")};
  view.clients[3].set_set_aside_until_us(900 * kSecond);
  view.clients[3].set_set_aside_reason("10 failures in a row");
  view.events = {MakeEvent(1, "joined", 3, "lima-1"), MakeEvent(2, "round aborted", -1, "too few updates"),
                 MakeEvent(3, "set aside", 3, "10 failures in a row")};
  view.now_us = 125 * kSecond;
  return view;
}

std::string Text(const WatchScreen& screen) { return absl::StrJoin(screen.rows, "\n") + "\n"; }

std::string Golden(const std::string& name) { return Slurp(InSource("tests/golden/watch_" + name + ".txt")); }

TEST(WatchScreenTest, WholeScreens) {
  WatchView view = RunUnderWay();
  EXPECT_EQ(Text(DrawWatch(view, {80, 24}, false)), Golden("80x24"));
  EXPECT_EQ(Text(DrawWatch(view, {120, 40}, false)), Golden("120x40"));
  EXPECT_EQ(Text(DrawWatch(view, {40, 10}, false)), Golden("40x10"));
  EXPECT_EQ(Text(DrawWatch(view, {80, 24}, true)), Golden("80x24_color"));
  view.help = true;
  view.trouble = "the coordinator went away; calling again";
  EXPECT_EQ(Text(DrawWatch(view, {80, 24}, false)), Golden("help"));
}

TEST(WatchScreenTest, RegressionHasACurveOfTheLossAlone) {
  WatchView view = RunUnderWay();
  for (v1::Round& round : view.rounds) round.clear_accuracy();
  for (const size_t width : {size_t{60}, size_t{80}}) {
    const std::string text = Text(DrawWatch(view, {width, 24}, false));
    EXPECT_THAT(text, HasSubstr("\ntest loss  0.1636  rounds 1 to 11")) << width;
    EXPECT_THAT(text, Not(HasSubstr("not evaluated yet"))) << width;
  }
}

TEST(WatchScreenTest, ARunThatHasNotBegun) {
  WatchView view;
  view.status.set_run("r");
  view.status.set_state("paused");
  view.status.set_reason("new data");
  view.status.set_rounds_total(5);
  EXPECT_EQ(Text(DrawWatch(view, {60, 14}, false)), Golden("empty"));
}

TEST(WatchScreenTest, FitsEveryScreen) {
  WatchView view = RunUnderWay();
  view.trouble = "the coordinator went away; calling again";
  for (const bool help : {false, true}) {
    view.help = help;
    for (size_t width = 0; width <= 130; width += width < 12 ? 1 : 7) {
      for (size_t height = 1; height <= 50; ++height) {
        const WatchScreen screen = DrawWatch(view, {width, height}, false);
        ASSERT_EQ(screen.rows.size(), height) << width;
        for (const std::string& row : screen.rows) ASSERT_LE(ColumnsOf(row), width) << height << ": " << row;
      }
    }
  }
}

TEST(WatchScreenTest, ScrollsTheClientsAsFarAsThereAreAny) {
  WatchView view = RunUnderWay();
  const auto draw = [&](size_t scroll) {
    view.scroll = scroll;
    return DrawWatch(view, {80, 14}, false);
  };
  const WatchScreen top = draw(0);
  EXPECT_THAT(Text(top), HasSubstr("\noslo-1 "));
  EXPECT_THAT(Text(top), Not(HasSubstr("\ncairo-1 ")));
  const WatchScreen end = draw(1000);
  EXPECT_GT(end.scroll, 0u);
  EXPECT_LT(end.scroll, view.clients.size());
  EXPECT_THAT(Text(end), HasSubstr("\ncairo-1 "));
  EXPECT_THAT(Text(end), Not(HasSubstr("\noslo-1 ")));
  view.clients.resize(1);
  EXPECT_EQ(draw(5).scroll, 0u);
}

TEST(WatchScreenTest, NobodyWaitsForTheClientsOfABufferedRun) {
  WatchView view = RunUnderWay();
  EXPECT_THAT(Text(DrawWatch(view, {200, 24}, false)), HasSubstr("collecting updates, waits for 2: oslo-1, 東京-1\n"));
  view.status.mutable_config()->mutable_rounds()->set_mode("buffered");
  EXPECT_THAT(Text(DrawWatch(view, {200, 24}, false)), Not(HasSubstr("waits for")));
}

TEST(WatchScreenTest, NothingThatTheFleetSaysReachesTheTerminalAsACommand) {
  const std::string attack =
      "a\033]0;b\a\033[2J\rc\nd\x9b"
      "31m\xc2\x9b"
      "1m\u202e\u200b\x7f\xff";
  WatchView view = RunUnderWay();
  view.status.set_run(attack);
  view.status.set_reason(attack);
  view.status.set_phase(attack);
  view.trouble = attack;
  for (v1::Client& client : view.clients) client.set_name(attack);
  view.clients[3].set_set_aside_reason(attack);
  for (v1::Event& event : view.events) {
    event.set_kind(attack);
    event.set_detail(attack);
  }
  for (v1::Round& round : view.rounds) round.set_state(attack);
  for (const std::string& row : DrawWatch(view, {200, 40}, false).rows) {
    for (const char byte : row) ASSERT_FALSE(static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) << row;
    for (const char* part : {"\u009b", "\u202e", "\u200b", "\xff"}) ASSERT_THAT(row, Not(HasSubstr(part)));
  }
  // In color, an ESC begins nothing but a color, and each ends in its row.
  for (const std::string& row : DrawWatch(view, {200, 40}, true).rows) {
    std::string last;
    for (size_t at = row.find('\033'); at != std::string::npos; at = row.find('\033', at + 1)) {
      last = row.substr(at, row.find('m', at) + 1 - at);
      ASSERT_EQ(last.find_first_not_of("\033[0123456789;m"), std::string::npos) << row;
    }
    ASSERT_TRUE(last.empty() || last == "\033[0m") << row;
  }
}

TEST(ScreenRowTest, KnowsHowWideTextIs) {
  EXPECT_EQ(ColumnsOf("abc"), 3u);
  EXPECT_EQ(ColumnsOf("東京"), 4u);
  EXPECT_EQ(ColumnsOf("\U0001F600"), 2u);
  EXPECT_EQ(ColumnsOf("e\u0301"), 1u);
  EXPECT_EQ(ColumnsOf("\u2588\u28ff\u2026"), 3u);
  EXPECT_EQ(ColumnsOf("\t\033"), 2u);
  EXPECT_EQ(ColumnsOf(std::string(2, '\0')), 2u);
}

TEST(ScreenRowTest, CutsAndPads) {
  const auto row = [](size_t width, const std::string& text) {
    ScreenRow made(width, false);
    made.Add(text);
    return made.text();
  };
  EXPECT_EQ(row(4, "abcd"), "abcd");
  EXPECT_EQ(row(4, "abcde"), "abc\u2026");
  EXPECT_EQ(row(4, "東京都"), "東\u2026") << "half a character does not fit";
  EXPECT_EQ(row(1, "ab"), "\u2026");
  EXPECT_EQ(row(0, "ab"), "");
  EXPECT_EQ(row(4, "e\u0301\u202ef\a"), "ef\ufffd");
  ScreenRow cells(12, true);
  cells.AddCell("12", 4, true);
  cells.AddCell("open", 6, false, Ink::kState);
  cells.AddCell("x", 9, true);
  EXPECT_EQ(cells.text(), "  12\033[33mopen\033[0m   x");
  EXPECT_EQ(cells.room(), 0u);
}

TEST(BrailleChartTest, JoinsThePointsFromEdgeToEdge) {
  EXPECT_THAT(DrawChart({{1, 0}, {2, 1}}, 2, 1).rows, ElementsAre("\u2860\u280a"));
  EXPECT_THAT(DrawChart({{1, 0}, {2, 0}, {9, 0}}, 3, 1).rows, ElementsAre("\u28c0\u28c0\u28c0"));
  EXPECT_THAT(DrawChart({{1, 0}, {2, 4}}, 1, 2).rows, ElementsAre("\u28b8", "\u2847"));
  EXPECT_THAT(DrawChart({{5, 3}}, 2, 1).rows, ElementsAre("\u2840 "));
}

TEST(BrailleChartTest, LeavesOutWhatIsNoNumber) {
  const double infinity = std::numeric_limits<double>::infinity();
  const BrailleChart chart = DrawChart({{1, 2}, {2, std::nan("")}, {3, infinity}, {4, 8}}, 4, 2);
  EXPECT_EQ(chart.lowest, 2);
  EXPECT_EQ(chart.highest, 8);
  EXPECT_THAT(DrawChart({{1, infinity}}, 2, 2).rows, Each("  "));
  EXPECT_THAT(DrawChart({{1, 1}, {2, 2}}, 0, 1).rows, ElementsAre(""));
  EXPECT_THAT(DrawChart({{1, 1}, {2, 2}}, 3, 0).rows, IsEmpty());
}

TEST(KeysTest, AreToldFromSequences) {
  EXPECT_THAT(KeysOf("jk?hqQx "), ElementsAre(Key::kDown, Key::kUp, Key::kHelp, Key::kHelp, Key::kQuit, Key::kQuit));
  EXPECT_THAT(KeysOf("\033[A\033OB\033[B"), ElementsAre(Key::kUp, Key::kDown, Key::kDown));
  EXPECT_THAT(KeysOf("\033[1;5q\033[1;5A\033[12~"), IsEmpty()) << "keys with modifiers and function keys";
  EXPECT_THAT(KeysOf("\033"), IsEmpty());
  EXPECT_THAT(KeysOf("\033[q"), IsEmpty());
}

}  // namespace
}  // namespace terse
