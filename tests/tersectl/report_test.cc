// The figures, tables, files and pictures that tersectl makes of what the coordinator serves.
#include "tersectl/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "proto/proto_text.h"
#include "tersectl/svg_plot.h"
#include "tersectl/text_table.h"
#include "tersectl/watch.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

v1::Status RunStatus() {
  v1::Status status;
  status.set_run("r");
  status.set_state("finished");
  status.set_parameters(1000);
  status.set_rounds_total(3);
  status.mutable_config()->mutable_train()->set_local_steps(10);
  status.mutable_config()->mutable_rounds()->set_clients(4);
  return status;
}

// Opens at `id` seconds and is settled 900 ms later, `overhead_ms` of which were not the slowest client's training.
v1::Round MakeRound(uint64_t id, const std::string& state, int64_t overhead_ms) {
  v1::Round round;
  round.set_id(id);
  round.set_state(state);
  round.set_opened_us(static_cast<int64_t>(id) * 1000000);
  round.set_committed_us(round.opened_us() + 900000);
  round.set_train_us_max(900000 - overhead_ms * 1000);
  round.set_train_loss(0);
  round.set_dense_bytes_up(state == "committed" ? 160000 : 0);
  round.set_payload_bytes_up(50);
  round.set_wire_bytes_up(100);
  round.set_dense_bytes_down(round.dense_bytes_up());
  round.set_payload_bytes_down(200);
  round.set_wire_bytes_down(300);
  return round;
}

std::vector<v1::Round> FourRounds() {
  std::vector<v1::Round> rounds = {MakeRound(1, "committed", 5), MakeRound(2, "aborted", 700),
                                   MakeRound(3, "committed", 30), MakeRound(4, "committed", 10)};
  rounds[0].set_accuracy(0.5);
  rounds[0].set_test_loss(1.5);
  rounds[2].set_accuracy(0.75);
  rounds[2].set_test_loss(0.25);
  return rounds;
}

TEST(Summarize, FiguresOfTheRun) {
  const Summary summary = Summarize(RunStatus(), FourRounds());
  EXPECT_EQ(summary.accuracy, 0.75);  // the last evaluated, not the last round
  EXPECT_EQ(summary.loss, 0.25);
  EXPECT_EQ(summary.rounds, 3u);
  EXPECT_EQ(summary.clients, 4u);
  EXPECT_EQ(summary.iterations, 30u);
  EXPECT_EQ(summary.parameters, 1000u);
  EXPECT_EQ(summary.dense_bytes_up, 480000u);
  EXPECT_EQ(summary.payload_bytes_up, 200u);  // the aborted round's bytes were sent too
  EXPECT_EQ(summary.wire_bytes_up, 400u);
  EXPECT_EQ(summary.dense_bytes_down, 480000u);
  EXPECT_EQ(summary.payload_bytes_down, 800u);
  EXPECT_EQ(summary.wire_bytes_down, 1200u);
  EXPECT_EQ(summary.compression_up_wire, 1200);
  EXPECT_EQ(summary.compression_up_payload, 2400);
  EXPECT_EQ(summary.compression_both_wire, 600);
  EXPECT_EQ(summary.round_overhead_ms_p50, 10);  // of 5, 10 and 30: an aborted round has no overhead
  EXPECT_DOUBLE_EQ(summary.seconds, 3.9);
}

TEST(Summarize, MedianOfAnEvenNumberOfRounds) {
  std::vector<v1::Round> rounds = FourRounds();
  rounds.push_back(MakeRound(5, "committed", 20));
  EXPECT_EQ(Summarize(RunStatus(), rounds).round_overhead_ms_p50, 15);
}

TEST(Summarize, ClientsOfABufferedRunTrainAcrossRounds) {
  v1::Status status = RunStatus();
  const uint64_t all = Summarize(status, {MakeRound(1, "committed", 5), MakeRound(2, "committed", 5)}).iterations;
  status.mutable_config()->mutable_rounds()->set_mode("buffered");
  status.mutable_config()->mutable_rounds()->set_clients(4);
  status.mutable_config()->mutable_rounds()->set_buffer(2);
  // The second update was begun before its round.
  const Summary summary = Summarize(status, {MakeRound(1, "committed", 5), MakeRound(2, "committed", -700)});
  EXPECT_EQ(summary.round_overhead_ms_p50, std::nullopt);
  EXPECT_EQ(summary.iterations, all / 2);
}

TEST(Summarize, NothingIsKnownBeforeTheFirstRound) {
  const Summary summary = Summarize(RunStatus(), {});
  EXPECT_FALSE(summary.accuracy.has_value());
  EXPECT_FALSE(summary.compression_up_wire.has_value());
  EXPECT_FALSE(summary.compression_both_wire.has_value());
  const nlohmann::ordered_json json = SummaryJson(summary);
  EXPECT_TRUE(json["accuracy"].is_null());
  EXPECT_TRUE(json["compression_up_payload"].is_null());
  EXPECT_TRUE(json["round_overhead_ms_p50"].is_null());
  EXPECT_EQ(json["rounds"], 0);
  EXPECT_THAT(SummaryTable(summary, false), HasSubstr("accuracy                     -\n"));
}

TEST(Summary, HasWhatIsBelowRelays) {
  v1::Status status = RunStatus();
  const Summary flat = Summarize(status, FourRounds());
  EXPECT_TRUE(SummaryJson(flat)["below"].is_null());
  EXPECT_THAT(SummaryTable(flat, false), Not(HasSubstr("below relays")));
  status.mutable_below()->set_clients(40);
  status.mutable_below()->set_wire_bytes_up(5'000'000);
  const Summary tree = Summarize(status, FourRounds());
  EXPECT_EQ(SummaryJson(tree)["below"]["clients"], 40);
  EXPECT_EQ(SummaryJson(tree)["below"]["wire_bytes_up"], 5'000'000);
  EXPECT_THAT(SummaryTable(tree, false), HasSubstr("below relays: up, on the wire"));
  EXPECT_EQ(SummaryJson(*SummaryFromJson(SummaryJson(tree))), SummaryJson(tree));
  nlohmann::ordered_json earlier = SummaryJson(flat);
  earlier.erase("below");
  EXPECT_FALSE(SummaryFromJson(earlier)->below.has_value());
}

TEST(SummaryJson, HasTheseKeys) {
  std::vector<std::string> keys;
  const nlohmann::ordered_json json = SummaryJson(Summarize(RunStatus(), FourRounds()));
  for (const auto& item : json.items()) keys.push_back(item.key());
  EXPECT_THAT(keys,
              ElementsAre("run", "state", "accuracy", "loss", "top5", "perplexity", "rounds", "clients", "iterations",
                          "parameters", "dense_bytes_up", "payload_bytes_up", "wire_bytes_up", "dense_bytes_down",
                          "payload_bytes_down", "wire_bytes_down", "compression_up_wire", "compression_up_payload",
                          "compression_both_wire", "round_overhead_ms_p50", "seconds", "below"));
  EXPECT_EQ(json["compression_up_wire"].dump(), "1200.0");
  EXPECT_EQ(json["wire_bytes_up"].dump(), "400");
}

TEST(RoundsCsv, EveryFieldInOrderAndDigitByDigit) {
  v1::Round round;
  round.set_id(std::numeric_limits<uint64_t>::max());
  round.set_state("committed");
  round.set_opened_us(std::numeric_limits<int64_t>::min());
  round.set_train_loss(0.1);
  round.set_wire_bytes_up(9007199254740993);  // 2^53 + 1: lost by anything that goes through a double
  round.set_compression_up_wire(1.5);
  v1::Round evaluated;
  evaluated.set_accuracy(0);
  evaluated.set_top5(0.9);
  evaluated.set_perplexity(7.5);
  evaluated.set_why("kept, \"Q\" 1");
  const std::vector<std::string> lines = absl::StrSplit(RoundsCsv({round, evaluated}), '\n');
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0],
            "id,state,base_version,opened_us,closed_us,committed_us,updates,train_us_max,train_loss,accuracy,test_loss,"
            "dense_bytes_up,payload_bytes_up,wire_bytes_up,dense_bytes_down,payload_bytes_down,wire_bytes_down,top5,"
            "perplexity,local_steps,choice,why,compression_up_wire,compression_both_wire");
  EXPECT_EQ(lines[1],
            "18446744073709551615,committed,0,-9223372036854775808,,,,,0.1,,,0,0,9007199254740993,0,0,0,,,,,,1.5,");
  EXPECT_EQ(lines[2], "0,,0,0,,,,,,0.0,,0,0,0,0,0,0,0.9,7.5,,,\"kept, \"\"Q\"\" 1\",,")
      << "what an open round does not know yet is empty, not 0";
  EXPECT_EQ(lines[3], "");
}

TEST(ToJson, NumbersTextsBytesAndTables) {
  v1::Status status = RunStatus();
  status.set_lineage(std::string("\x00\xff", 2));
  const nlohmann::ordered_json json = ToJson(status);
  EXPECT_EQ(json["lineage"], "00ff");
  EXPECT_EQ(json["parameters"].dump(), "1000");
  EXPECT_EQ(json["config"]["train"]["local_steps"], 10);
  EXPECT_TRUE(ToJson(v1::Round())["accuracy"].is_null());
  v1::Event event;
  event.set_client(-1);
  event.set_detail("a \"quoted\", thing");
  event.set_id(7);
  EXPECT_EQ(ToJson(event)["client"].dump(), "-1");
  EXPECT_EQ(CsvRow(event), "0,,0,-1,\"a \"\"quoted\"\", thing\",7,\n");
}

TEST(EvaluatedPoints, BytesAddUpOverAllRounds) {
  const std::vector<EvaluatedPoint> points = EvaluatedPoints(FourRounds());
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].wire_bytes_up, 100u);
  EXPECT_EQ(points[1].round, 3u);
  EXPECT_EQ(points[1].wire_bytes_up, 300u);
  EXPECT_EQ(points[1].accuracy, 0.75);
  EXPECT_EQ(points[1].test_loss, 0.25);
}

TEST(AccuracyPlot, DrawsBothCurvesInsideTheFrame) {
  const std::string svg = AccuracyPlot("<run> & co", "sub", EvaluatedPoints(FourRounds()));
  EXPECT_THAT(svg, StartsWith("<svg xmlns"));
  EXPECT_THAT(svg, HasSubstr("&lt;run&gt; &amp; co"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, HasSubstr("<title>round 3, 300 B: 0.7500</title>"));
  EXPECT_THAT(svg, HasSubstr("test loss"));
  // log10 runs from 2 - 0.06 at x = 76 to log10(300) + 0.06 at x = 816.
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"150.4\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("http://www.w3.org/1999")));  // nothing but the namespace: no external resources
}

TEST(AccuracyPlot, FewPointsAndOddValues) {
  EXPECT_THAT(AccuracyPlot("t", "s", {}), HasSubstr("No round has been evaluated yet"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(AccuracyPlot("t", "s", {{1, 0, 0.5, {}}, {2, 10, nan, {}}}), HasSubstr("No round has been evaluated"));
  const std::string one = AccuracyPlot("t", "s", {{1, 1, 0, {}}});
  EXPECT_THAT(one, HasSubstr("<circle"));
  EXPECT_THAT(one, Not(HasSubstr("test loss")));
  EXPECT_THAT(one, Not(HasSubstr("nan")));
  EXPECT_THAT(AccuracyPlot("t", "s", {{1, 5, 1, 0.0}, {2, 5, 1, 0.0}}), Not(HasSubstr("nan")));
  EXPECT_THAT(AccuracyPlot("t", "s", {{1, 5, 1, nan}}), Not(HasSubstr("test loss")));
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  EXPECT_THAT(AccuracyPlot("t", "s", {{1, 1, 0, 1e300}, {2, most, 1, 0.0}}), HasSubstr("EB"));
}

// A run of regression, in whose rounds nothing was right or wrong.
std::vector<v1::Round> RoundsWithLossAlone() {
  std::vector<v1::Round> rounds = FourRounds();
  for (v1::Round& round : rounds) round.clear_accuracy();
  rounds[0].set_test_loss(0.5);
  return rounds;
}

TEST(Regression, HasNoAccuracyInAnyReport) {
  const std::vector<v1::Round> rounds = RoundsWithLossAlone();
  const Summary summary = Summarize(RunStatus(), rounds);
  EXPECT_TRUE(SummaryJson(summary)["accuracy"].is_null());
  EXPECT_EQ(SummaryJson(summary)["loss"], 0.25);
  EXPECT_THAT(SummaryTable(summary, false), AllOf(HasSubstr("test loss"), Not(HasSubstr("accuracy"))));
  EXPECT_THAT(SummaryTable(Summarize(RunStatus(), {}), false), HasSubstr("accuracy")) << "it may still have one";
  const std::vector<std::string> header = absl::StrSplit(RoundsCsv(rounds), ',');
  const std::vector<std::string> row =
      absl::StrSplit(std::vector<std::string>(absl::StrSplit(RoundsCsv(rounds), '\n'))[1], ',');
  const size_t column = std::find(header.begin(), header.end(), "accuracy") - header.begin();
  ASSERT_LT(column, row.size());
  EXPECT_EQ(row[column], "");
}

TEST(Regression, ThePictureShowsTheLossAlone) {
  const std::vector<EvaluatedPoint> points = EvaluatedPoints(RoundsWithLossAlone());
  ASSERT_EQ(points.size(), 2u);
  EXPECT_TRUE(HasLossAlone(points));
  EXPECT_FALSE(HasLossAlone(EvaluatedPoints(FourRounds())));
  EXPECT_FALSE(HasLossAlone({}));
  const std::string svg = AccuracyPlot("t", "s", points);
  EXPECT_THAT(svg, HasSubstr("<g class=\"loss\">"));
  EXPECT_THAT(svg, HasSubstr("<title>round 3, 300 B: 0.2500</title>"));
  EXPECT_THAT(svg, Not(HasSubstr("test accuracy")));
  EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 860 428\"")) << "one panel";
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(AccuracyPlot("t", "s", {{1, 10, {}, nan}}), HasSubstr("No round has been evaluated yet"));
}

TEST(TextTable, AlignsWithAndWithoutColor) {
  TextTable table({{"id", true}, {"state"}, {"n", true}});
  table.AddRow({"1", "aborted", "10"});
  table.AddRow({"100", "x", "7"});
  EXPECT_EQ(table.Render(false), " id  state     n\n  1  aborted  10\n100  x         7\n");
  EXPECT_THAT(table.Render(true), HasSubstr("\033[31maborted\033[0m  10\n"));
}

TEST(TextTable, ClientsByName) {
  EXPECT_EQ(ClientText(3, "berlin-1"), "berlin-1");
  EXPECT_EQ(ClientText(3, ""), "#3");
  EXPECT_EQ(ClientText(-1, ""), "");
}

TEST(TextTable, Units) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(999), "999 B");
  EXPECT_EQ(BytesText(1000), "1.00 kB");
  EXPECT_EQ(BytesText(999499), "999 kB");
  EXPECT_EQ(BytesText(999500), "1.00 MB");
  EXPECT_EQ(BytesText(1724320), "1.72 MB");
  EXPECT_EQ(BytesText(std::numeric_limits<uint64_t>::max()), "18.4 EB");
  EXPECT_EQ(DurationText(0.0123), "12 ms");
  EXPECT_EQ(DurationText(12.34), "12.3 s");
  EXPECT_EQ(DurationText(59.97), "1m 00s");
  EXPECT_EQ(DurationText(3599.7), "1h 00m");
  EXPECT_EQ(DurationText(7501), "2h 05m");
  EXPECT_EQ(RateText(0), "-");
  EXPECT_EQ(RateText(3490.6), "x3491");
  EXPECT_EQ(RateText(12.34), "x12.3");
}

TEST(WatchLines, FiguresOfTheRoundAndTimeLeft) {
  v1::Status status;
  status.set_rounds_total(5);
  WatchLines lines(status);
  EXPECT_LT(lines.SecondsLeft(), 0);
  const std::vector<v1::Round> rounds = FourRounds();
  lines.Add(rounds[0]);
  EXPECT_EQ(lines.Line(rounds[0]),
            "          1/5    0.5000      0.0000     100 B     300 B        x1600       x800    900 ms     3.6 s\n");
  lines.Add(rounds[1]);
  EXPECT_EQ(lines.Line(rounds[1]), "          1/5  round 2 aborted\n");
  lines.Add(rounds[2]);
  // As in `rounds`, the rates are the round's own. Two rounds took 2.9 s, so three more take 4.35 s.
  EXPECT_EQ(lines.Line(rounds[2]),
            "          2/5    0.7500      0.0000     100 B     300 B        x1600       x800    900 ms     4.3 s\n");
  EXPECT_EQ(lines.Header().size(), lines.Line(rounds[2]).size());
}

// How many rounds there will be is not known when iterations end the run.
TEST(WatchLines, ProgressInIterationsWhereTheyEndTheRun) {
  v1::Status status;
  status.set_rounds_total(2000);
  status.mutable_config()->mutable_limits()->set_iterations(1000);
  status.mutable_config()->mutable_train()->set_local_steps(40);
  WatchLines lines(status);
  std::vector<v1::Round> rounds = FourRounds();
  rounds[0].set_local_steps(100);
  lines.Add(rounds[0]);
  // 900 ms for 100 iterations, and 900 more.
  EXPECT_EQ(lines.Line(rounds[0]),
            "     100/1000    0.5000      0.0000     100 B     300 B        x1600       x800    900 ms     8.1 s\n");
  lines.Add(rounds[2]);  // no controller planned it
  EXPECT_THAT(lines.Line(rounds[2]), StartsWith("     140/1000 "));
  EXPECT_NEAR(lines.SecondsLeft(), 2.9 / 140 * 860, 1e-9);
  EXPECT_THAT(lines.Header(), StartsWith("    iteration "));
  EXPECT_EQ(lines.Progress(), "2 rounds, 140 of 1000 iterations");
}

}  // namespace
}  // namespace terse
