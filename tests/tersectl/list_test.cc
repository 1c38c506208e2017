// Lists of tersectl: which rows, in which order, and which columns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tersectl/list_view.h"
#include "tersectl/lists.h"
#include "tersectl/report.h"
#include "tersectl/screen_row.h"
#include "tersectl/text_table.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::vector<ColumnHead> kHeads = {{"name", ColumnKind::kText},
                                        {"accuracy", ColumnKind::kNumber},
                                        {"up", ColumnKind::kBytes},
                                        {"time", ColumnKind::kSeconds},
                                        {"seen", ColumnKind::kTime}};

bool Holds(const std::string& condition, const ListCell& cell) {
  const absl::StatusOr<ListCondition> parsed = ListCondition::Parse(condition, kHeads);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() && parsed->Holds(cell);
}

std::string Trouble(const std::string& condition) {
  return std::string(ListCondition::Parse(condition, kHeads).status().message());
}

TEST(ListCondition, ComparesTexts) {
  const ListCell berlin = TextCell("berlin-1");
  for (const char* true_one : {"name=berlin-1", "name=berlin*", "name=*lin*1", "name=*", "name!=berlin", "name>a",
                               "name<=berlin-1", "name!="}) {
    EXPECT_TRUE(Holds(true_one, berlin)) << true_one;
  }
  for (const char* false_one : {"name=berlin", "name=*lin", "name=b*n", "name!=ber*", "name<berlin-1", "name="}) {
    EXPECT_FALSE(Holds(false_one, berlin)) << false_one;
  }
  EXPECT_TRUE(Holds("name=a=b", TextCell("a=b"))) << "the first sign counts";
}

TEST(ListCondition, ComparesNumbersAsTheyAreMeant) {
  EXPECT_TRUE(Holds("accuracy>=0.9712", DecimalCell(0.97124)));
  EXPECT_TRUE(Holds("accuracy=0.9712", DecimalCell(0.97124))) << "as it is shown";
  EXPECT_FALSE(Holds("accuracy>0.98", DecimalCell(0.97124)));
  EXPECT_TRUE(Holds("up>5MB", BytesCell(5'000'001)));
  EXPECT_FALSE(Holds("up>5MB", BytesCell(5'000'000)));
  EXPECT_TRUE(Holds("up=5MB", BytesCell(5'000'000)));
  EXPECT_TRUE(Holds("time<1m30s", SecondsCell(89)));
  EXPECT_FALSE(Holds("time<1m30s", SecondsCell(90)));
  EXPECT_TRUE(Holds("time>=90", SecondsCell(90)));
  const ListCell seen = TimeCell(1'700'000'000'000'000);  // 22:13:20 on the 14th
  EXPECT_TRUE(Holds("seen>2023-11-14 22:13:19 +0000", seen));
  EXPECT_TRUE(Holds("seen<2023-11-14T22:13:21Z", seen));
  EXPECT_FALSE(Holds("seen<2023-11-12", seen));
}

TEST(ListCondition, NothingIsSmallerOrGreaterThanTheUnknown) {
  for (const char* condition : {"accuracy<1", "accuracy>=0", "accuracy=0", "accuracy=*"}) {
    EXPECT_FALSE(Holds(condition, UnknownCell())) << condition;
  }
  EXPECT_TRUE(Holds("accuracy=", UnknownCell()));
  EXPECT_FALSE(Holds("accuracy=", DecimalCell(0)));
  EXPECT_TRUE(Holds("accuracy!=0.5", UnknownCell()));
}

TEST(ListCondition, SaysWhatIsWrong) {
  EXPECT_EQ(Trouble("acuracy>0.9"),
            "there is no column 'acuracy'; did you mean 'accuracy'? the columns are name, accuracy, up, time, seen");
  EXPECT_THAT(Trouble("name"), HasSubstr("'name' is no condition; give one as in state=open"));
  EXPECT_EQ(Trouble("accuracy>high"), "accuracy cannot be compared with 'high'; give a number");
  EXPECT_EQ(Trouble("up<1.72 XB"), "up cannot be compared with '1.72 XB'; give an amount of bytes, as in 5MB");
  EXPECT_THAT(Trouble("seen>yesterday"), HasSubstr("give a time, as in '2026-11-27 03:00'"));
}

TEST(ListOrder, UnknownValuesComeLastBothWays) {
  const std::vector<ListCell> cells = {DecimalCell(10), UnknownCell(), DecimalCell(9), DecimalCell(10)};
  std::vector<size_t> places = {0, 1, 2, 3};
  SortPlaces(cells, /*descending=*/false, &places);
  EXPECT_THAT(places, ElementsAre(2, 0, 3, 1));
  SortPlaces(cells, /*descending=*/true, &places);
  EXPECT_THAT(places, ElementsAre(0, 3, 2, 1)) << "equal ones stay as they were";
}

class ListsTest : public ::testing::Test {
 protected:
  ListsTest() {
    server_.status.set_run("fmnist-sbc-p001");
    for (int i = 0; i < 3; ++i) AddRow(i);
    server_.status.set_round(3);
    server_.status.set_clients_known(3);
  }

  // One of everything that a coordinator lists, with names and figures as they are in use.
  void AddRow(int i) {
    v1::Client client;
    client.set_index(i);
    client.set_name(absl::StrCat("berlin-hospital-0", i));
    client.set_connected(i > 0);
    client.set_state(i > 0 ? "training" : "away");
    client.set_version(9999);
    client.set_updates_applied(9990 + i);
    client.set_samples(60000);
    client.set_wire_bytes_up(1'234'567'890 * static_cast<uint64_t>(3 - i));
    client.set_wire_bytes_down(12'345'678'901);
    client.set_last_seen_us(1'700'000'000'000'000 + 1'000'000 * i);
    server_.clients.push_back(client);
    v1::Run run;
    run.set_name(absl::StrCat("fmnist-sbc-p00", i));
    run.set_state(i == 0 ? "finished" : "active");
    run.set_phase(i == 0 ? "ended" : "waiting for clients");
    run.set_version(1000);
    run.set_rounds_total(10000);
    run.set_wire_bytes_up(1'234'567 * static_cast<uint64_t>(i + 1));
    run.set_wire_bytes_down(123'456'789);
    run.set_first_opened_us(1'700'000'000'000'000);
    run.set_last_committed_us(1'700'000'000'000'000 + 7501'000'000);
    if (i < 2) run.set_accuracy(0.9 + 0.01 * i);
    if (i < 2) run.set_best_accuracy(0.95);
    server_.runs.push_back(run);
    v1::Round round;
    round.set_id(9990 + static_cast<uint64_t>(i));
    round.set_state("committed");
    round.set_updates(1000);
    round.set_train_loss(0.1);
    round.set_accuracy(0.9712);
    round.set_test_loss(0.0123);
    round.set_opened_us(1'700'000'000'000'000);
    round.set_committed_us(1'700'000'012'300'000);
    round.set_wire_bytes_up(1'234'567);
    round.set_wire_bytes_down(123'456'789);
    round.set_dense_bytes_up(4'000'000'000);
    round.set_dense_bytes_down(4'000'000'000);
    for (const char* name : {"accuracy", "loss", "grad_norm", "seconds_per_step", "examples"}) {
      v1::MetricMean* const mean = round.add_metrics();
      mean->set_kind("evaluation");
      mean->set_name(name);
      mean->set_mean(0.5 * i);
      mean->set_clients(3);
    }
    server_.rounds.push_back(round);
    v1::Event event;
    event.set_id(static_cast<uint64_t>(i) + 1);
    event.set_time_us(1'700'000'000'000'000);
    event.set_kind("checkpoint_damaged");
    event.set_round(9990);
    event.set_client(i);
    event.set_client_name(client.name());
    event.set_detail("the update was made for round 12 with another codec, and the client begins anew");
    server_.events.push_back(event);
    v1::LedgerRow row;
    row.set_round(9990);
    row.set_client(static_cast<uint32_t>(i));
    row.set_client_name(client.name());
    row.set_direction("down");
    row.set_wire_bytes(12'345'678);
    server_.ledger.push_back(row);
    v1::ClientMetric metric;
    metric.set_round(9990);
    metric.set_client_name(client.name());
    metric.set_kind("evaluation");
    metric.set_name("seconds_per_step");
    server_.metrics.push_back(metric);
    v1::AuditRecord record;
    record.set_id(12345);
    record.set_time_us(1'700'000'000'000'000);
    record.set_ended_us(1'700'000'000'000'001);
    record.set_who("operator ada");
    record.set_certificate(std::string(40, 'a'));
    record.set_address("2001:db8::1");
    record.set_action("AbortRound");
    record.set_run("fmnist-sbc-p001");
    record.set_detail("new data for the clients in Berlin and Munich");
    record.set_result("FAILED_PRECONDITION: no round is open; `tersectl status` says what the run waits for");
    record.set_times(1);
    server_.audit.push_back(record);
  }

  CtlOutcome Ask(const std::vector<std::string>& arguments, size_t columns = 0) {
    return InvokeAt(server_.address(), arguments, columns);
  }

  static size_t WidestLine(const std::string& text) {
    size_t widest = 0;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) widest = std::max(widest, ColumnsOf(line));
    return widest;
  }

  FakeAdminServer server_;
};

TEST_F(ListsTest, TheUsualColumnsFitATerminal) {
  const std::vector<std::vector<std::string>> lists = {
      {"runs"}, {"clients"}, {"rounds"}, {"events"}, {"ledger"}, {"metrics"}, {"metrics", "--clients"}, {"audit"}};
  for (const std::vector<std::string>& list : lists) {
    const CtlOutcome shown = Ask(list, 100);
    EXPECT_EQ(shown.code, kExitOk) << shown.err;
    EXPECT_LE(WidestLine(shown.out), 100u) << list[0] << "\n" << shown.out;
    EXPECT_GE(std::count(shown.out.begin(), shown.out.end(), '\n'), 4) << shown.out;
    // Only metrics may be more than fit: how many there are is the trainers' choice.
    EXPECT_EQ(shown.err.empty(), list != std::vector<std::string>{"metrics"}) << list[0] << ": " << shown.err;
    EXPECT_LE(WidestLine(Ask(list, 80).out), 80u) << list[0] << "\n" << Ask(list, 80).out;
  }
  const CtlOutcome metrics = Ask({"metrics"}, 100);
  EXPECT_THAT(metrics.err, AllOf(HasSubstr("there is no room for"), HasSubstr("evaluation_seconds_per_step"),
                                 HasSubstr("--wide shows every column")));
  EXPECT_THAT(metrics.out, StartsWith("round  clients  evaluation accuracy"));
  EXPECT_GT(WidestLine(Ask({"metrics", "--wide"}, 100).out), 100u);
}

TEST_F(ListsTest, TextsTakeSeveralLinesOfATerminalAndOneOfAFile) {
  const std::string on_terminal = Ask({"events"}, 100).out, in_file = Ask({"events"}).out;
  EXPECT_THAT(in_file, HasSubstr("the update was made for round 12 with another codec, and the client begins anew\n"));
  EXPECT_THAT(on_terminal, Not(HasSubstr("and the client begins anew")));
  EXPECT_GT(std::count(on_terminal.begin(), on_terminal.end(), '\n'), 4);
  std::string words;
  for (const absl::string_view word : absl::StrSplit(on_terminal, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    absl::StrAppend(&words, words.empty() ? "" : " ", word);
  }
  EXPECT_THAT(words, HasSubstr("anew")) << "nothing is cut";
  EXPECT_THAT(Ask({"events", "--wide"}, 100).out, HasSubstr("and the client begins anew"));
}

TEST_F(ListsTest, ChoosesRowsForPeopleAndPrograms) {
  const std::vector<std::string> wanted = {"clients", "--where", "state=training", "--sort", "up", "--limit", "1"};
  EXPECT_THAT(Ask(wanted).out, AllOf(HasSubstr("berlin-hospital-02"), Not(HasSubstr("berlin-hospital-01"))));
  std::vector<std::string> as_json = wanted;
  as_json.push_back("--json");
  const json rows = json::parse(Ask(as_json).out);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["name"], "berlin-hospital-02");
  EXPECT_TRUE(rows[0].contains("reliability")) << "columns are for people";
  as_json.push_back("--descending");
  EXPECT_EQ(json::parse(Ask(as_json).out)[0]["name"], "berlin-hospital-01");
  EXPECT_EQ(Ask({"runs", "--names", "--sort", "accuracy", "--descending"}).out,
            "fmnist-sbc-p001\nfmnist-sbc-p000\nfmnist-sbc-p002\n");
  EXPECT_EQ(Ask({"runs", "--names", "--where", "accuracy>0.9", "--where", "up>1MB"}).out, "fmnist-sbc-p001\n");
  EXPECT_EQ(json::parse(Ask({"rounds", "--json", "--where", "round=9991"}).out).size(), 1u);
  EXPECT_EQ(json::parse(Ask({"ledger", "--json", "--where", "client=*-01"}).out).size(), 1u);
  EXPECT_EQ(json::parse(Ask({"metrics", "--json", "--where", "evaluation_loss>=0.5"}).out).size(), 10u);
  EXPECT_EQ(json::parse(Ask({"events", "--json", "--where", "client=*-00"}).out).size(), 1u);
  EXPECT_EQ(Ask({"rounds", "--csv", "--limit", "1"}).out, RoundsCsv({server_.rounds[0]}));
}

TEST_F(ListsTest, ShowsTheColumnsThatWereAskedFor) {
  EXPECT_EQ(Ask({"clients", "--columns", "client,samples,set_aside"}).out,
            "client              samples  set aside\n"
            "berlin-hospital-00    60000  \n"
            "berlin-hospital-01    60000  \n"
            "berlin-hospital-02    60000  \n");
  EXPECT_EQ(Ask({"clients", "--columns", "index", "--columns", "client", "--limit", "1"}).out,
            "index  client\n    0  berlin-hospital-00\n");
  const std::string wide = Ask({"clients", "--wide"}).out;
  for (const ColumnHead& head : ClientList().Heads()) {
    EXPECT_THAT(wide, HasSubstr(absl::StrReplaceAll(head.name, {{"_", " "}})));
  }
  EXPECT_EQ(Ask({"clients", "--wide", "--columns", "client"}).code, kExitUsage);
}

TEST_F(ListsTest, KnowsItsColumns) {
  const CtlOutcome sorted = Ask({"clients", "--sort", "sampels"});
  EXPECT_EQ(sorted.code, kExitUsage);
  EXPECT_THAT(sorted.err, StartsWith("tersectl: --sort: there is no column 'sampels'; did you mean 'samples'? the "
                                     "columns are client, state, version"));
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"runs", "--columns", "run,acuracy"},
                                                {"events", "--where", "kin=x"},
                                                {"pki", "list", "--sort", "nam"},
                                                {"pki", "invitations", "--columns", "x"},
                                                {"config", "--where", "keys=a"},
                                                {"metrics", "--sort", "evaluation_los"},
                                                {"audit", "--where", "time>soon"}}) {
    const CtlOutcome outcome = Ask(wrong);
    EXPECT_EQ(outcome.code, kExitUsage) << wrong[0] << ": " << outcome.err;
    EXPECT_THAT(outcome.out, IsEmpty());
  }
  EXPECT_THAT(Ask({"metrics", "--sort", "evaluation_los"}).err,
              HasSubstr("--sort: there is no column 'evaluation_los'; did you mean 'evaluation_loss'?"));
}

TEST_F(ListsTest, SaysThatNothingWasFound) {
  EXPECT_EQ(Ask({"clients", "--where", "state=lost", "--where", "up>1GB"}).out,
            "no client of 3 has state=lost and up>1GB\n");
  EXPECT_EQ(Ask({"clients", "--where", "state=lost", "--json"}).out, "[]\n");
  EXPECT_EQ(Ask({"config", "--where", "key=wheels"}).out.substr(0, 10), "no key of ");
  server_.clients.clear();
  server_.events.clear();
  server_.runs.clear();
  EXPECT_EQ(Ask({"clients", "--where", "state=lost"}).out, "no client ever checked in\n");
  EXPECT_EQ(Ask({"events"}).out, "nothing has happened yet\n");
  EXPECT_THAT(Ask({"runs"}).out, StartsWith("the coordinator has no runs"));
}

TEST_F(ListsTest, RunsHaveTheirResults) {
  EXPECT_EQ(Ask({"runs", "--limit", "1"}).out,
            "run              state         rounds  accuracy    best       up    down    time  phase\n"
            "fmnist-sbc-p000  finished  1000/10000    0.9000  0.9500  1.23 MB  123 MB  2h 05m  ended\n");
  // Regression has a loss alone.
  server_.runs[1].clear_accuracy();
  server_.runs[1].set_test_loss(0.25);
  EXPECT_THAT(Ask({"runs"}).out, AllOf(HasSubstr("best    loss"), HasSubstr("0.2500")));
  // A coordinator of an earlier release tells no results.
  v1::Run bare;
  bare.set_name("old");
  bare.set_state("active");
  server_.runs = {bare};
  EXPECT_THAT(Ask({"runs"}).out, ::testing::ContainsRegex("old +active +0/0 +- +- +- +- +- "));
  EXPECT_TRUE(json::parse(Ask({"runs", "--json"}).out)[0]["wire_bytes_up"].is_null());
}

TEST_F(ListsTest, ThoseWhoFollowMayFilter) {
  server_.status.set_state("finished");
  const CtlOutcome followed = Ask({"events", "-f", "--where", "client=*-02"});
  EXPECT_EQ(followed.code, kExitOk) << followed.err;
  EXPECT_THAT(followed.out, AllOf(HasSubstr("berlin-hospital-02"), Not(HasSubstr("berlin-hospital-01"))));
  EXPECT_EQ(Ask({"events", "-f", "--sort", "round"}).code, kExitUsage);
}

TEST(TextTable, WrapsOnlyWhatMayWrap) {
  TextTable table({{"name"}, {"reason", false, true}});
  table.AddRow({"a-long-name-that-stays", "one two three four five six seven eight"});
  const std::string text = table.Render(false, 45);
  EXPECT_EQ(text,
            "name                    reason\n"
            "a-long-name-that-stays  one two three four\n"
            "                        five six seven eight\n");
  EXPECT_EQ(table.Render(false), table.Render(false, 200));
}

}  // namespace
}  // namespace terse
