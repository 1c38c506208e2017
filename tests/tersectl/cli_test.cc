// tersectl from its arguments to its output, against a coordinator on a loopback port.
#include "tersectl/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "terse/v1/fleet.grpc.pb.h"
#include "tersectl/report.h"
#include "tersectl/tensorboard.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/paths.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class TersectlTest : public ::testing::Test {
 protected:
  TersectlTest() {
    server_.status.set_run("lenet5-sbc2");
    server_.status.set_state("finished");
    server_.status.set_phase("ended");
    server_.status.set_lineage(std::string(16, '\x01'));
    server_.status.set_rounds_total(3);
    server_.status.set_version(3);
    server_.status.set_parameters(431080);
    server_.status.set_clients_known(1);
    server_.status.mutable_config()->mutable_train()->set_local_steps(10);
    server_.status.mutable_config()->mutable_rounds()->set_clients(4);
    SetRounds(3);
  }

  void SetRounds(uint64_t count) {
    server_.rounds.clear();
    for (uint64_t id = 1; id <= count; ++id) {
      v1::Round round;
      round.set_id(id);
      round.set_state("committed");
      round.set_base_version(id - 1);
      round.set_opened_us(static_cast<int64_t>(id) * 1000000);
      round.set_committed_us(static_cast<int64_t>(id) * 1000000 + 500000);
      round.set_dense_bytes_up(68972800);
      round.set_wire_bytes_up(9007199254740993 + id);
      if (id % 2 == 1) round.set_accuracy(0.9 + 0.01 * static_cast<double>(id));
      server_.rounds.push_back(round);
    }
    server_.status.set_round(count);
  }

  CtlOutcome Ask(std::vector<std::string> arguments) {
    arguments.push_back("--admin");
    arguments.push_back(server_.address());
    return Invoke(arguments);
  }

  FakeAdminServer server_;
};

TEST_F(TersectlTest, Status) {
  const CtlOutcome table = Ask({"status"});
  EXPECT_EQ(table.code, kExitOk) << table.err;
  EXPECT_THAT(table.out, StartsWith("run lenet5-sbc2   finished\nphase             ended\n"));
  EXPECT_THAT(table.out, HasSubstr("rounds committed  3 of 3\n"));
  EXPECT_THAT(table.out, Not(HasSubstr("iterations")));
  const json status = json::parse(Ask({"status", "--json"}).out);
  EXPECT_EQ(status["lineage"], "01010101010101010101010101010101");
  EXPECT_EQ(status["parameters"], 431080);
}

TEST_F(TersectlTest, RoundsAgreeInEveryForm) {
  const CtlOutcome csv = Ask({"rounds", "--csv"});
  EXPECT_EQ(csv.code, kExitOk) << csv.err;
  EXPECT_EQ(csv.out, RoundsCsv(server_.rounds));
  EXPECT_THAT(csv.out, HasSubstr("9007199254740994"));
  const CtlOutcome text = Ask({"rounds", "--json"});
  EXPECT_THAT(text.out, HasSubstr("\"wire_bytes_up\": 9007199254740994,"));
  const json rounds = json::parse(text.out);
  ASSERT_EQ(rounds.size(), 3u);
  EXPECT_TRUE(rounds[1]["accuracy"].is_null());
  EXPECT_EQ(rounds[2]["wire_bytes_up"].get<uint64_t>(), server_.rounds[2].wire_bytes_up());
  EXPECT_THAT(Ask({"rounds"}).out, HasSubstr("    2  committed"));
}

TEST_F(TersectlTest, MetricsAreAColumnEach) {
  EXPECT_THAT(Ask({"metrics"}).out, HasSubstr("no round of these has metrics by name; trainers report them"));
  EXPECT_THAT(Ask({"metrics", "--clients"}).out, HasSubstr("no client of these rounds has metrics by name"));
  const auto add = [this](int round, const char* kind, const char* name, double mean, uint32_t clients) {
    v1::MetricMean* const metric = server_.rounds[round - 1].add_metrics();
    metric->set_kind(kind);
    metric->set_name(name);
    metric->set_mean(mean);
    metric->set_clients(clients);
    metric->set_samples(100);
  };
  add(1, "evaluation", "accuracy", 0.5, 2);
  add(1, "training", "norm", 1.25, 3);
  add(3, "evaluation", "accuracy", 0.75, 1);
  EXPECT_EQ(Ask({"metrics"}).out,
            "round  clients  evaluation accuracy  training norm\n"
            "    1        3               0.5000         1.2500\n"
            "    3        1               0.7500              -\n");
  EXPECT_THAT(Ask({"metrics", "--newest", "1"}).out, Not(HasSubstr("0.5000")));
  const json means = json::parse(Ask({"metrics", "--json"}).out);
  ASSERT_EQ(means.size(), 3u);
  EXPECT_EQ(means[2], json({{"round", 3},
                            {"kind", "evaluation"},
                            {"name", "accuracy"},
                            {"mean", 0.75},
                            {"clients", 1},
                            {"samples", 100}}));
  // A file of commas has no place for them.
  EXPECT_THAT(Ask({"rounds", "--csv"}).out, Not(HasSubstr("metrics")));
}

TEST_F(TersectlTest, MetricsOfClientsAreARowEach) {
  v1::ClientMetric metric;
  metric.set_round(2);
  metric.set_client(1);
  metric.set_client_name("b");
  metric.set_kind("training");
  metric.set_name("norm");
  metric.set_value(1.25);
  metric.set_samples(640);
  server_.metrics = {metric};
  EXPECT_EQ(Ask({"metrics", "--clients"}).out,
            "round  client  kind      metric   value  samples\n"
            "    2  b       training  norm    1.2500      640\n");
  EXPECT_EQ(json::parse(Ask({"metrics", "--clients", "--json", "--first", "2"}).out)[0]["value"], 1.25);
  EXPECT_THAT(Ask({"metrics", "--clients", "--first", "3"}).out, HasSubstr("no client of these rounds"));
}

TEST_F(TersectlTest, AnOpenRoundHasNoLossYet) {
  v1::Round round;
  round.set_id(4);
  round.set_state("open");
  server_.rounds = {round};
  EXPECT_THAT(Ask({"rounds"}).out, Not(HasSubstr("0.0000")));
  const json open = json::parse(Ask({"rounds", "--json"}).out)[0];
  for (const char* key : {"closed_us", "committed_us", "updates", "train_us_max", "train_loss", "compression_up_wire",
                          "compression_both_wire"}) {
    EXPECT_TRUE(open.at(key).is_null()) << key;
  }
  EXPECT_THAT(Ask({"rounds", "--csv"}).out, HasSubstr("\n4,open,0,0,,,,,,,,0,"));
  server_.rounds[0].set_train_loss(0);
  EXPECT_THAT(Ask({"rounds"}).out, HasSubstr("0.0000"));
}

TEST_F(TersectlTest, RoundsAndWatchShowTheSameCompression) {
  SetRounds(2);
  for (v1::Round& round : server_.rounds) {
    round.set_dense_bytes_up(160000 * round.id());
    round.set_wire_bytes_up(100);
    round.set_dense_bytes_down(80000 * round.id());
    round.set_wire_bytes_down(300);
  }
  const std::string both = Ask({"rounds", "--columns", "compression,both_ways,round"}).out;
  EXPECT_THAT(both, HasSubstr("compression  both ways  round\n"));
  for (const std::string& out : {both, Ask({"watch"}).out}) {
    EXPECT_THAT(out, ::testing::ContainsRegex("x1600 +x600 "));
    EXPECT_THAT(out, ::testing::ContainsRegex("x3200 +x1200 "));
  }
  EXPECT_THAT(Ask({"summary"}).out, HasSubstr("compression both ways, wire  x900\n"));
}

TEST_F(TersectlTest, EventsAndLedgersNameClients) {
  v1::Event event;
  event.set_kind("client_joined");
  event.set_client(3);
  event.set_client_name("berlin-1");
  event.set_detail("berlin-1");
  server_.events = {event};
  v1::LedgerRow row;
  row.set_round(1);
  row.set_client(3);
  row.set_client_name("berlin-1");
  row.set_direction("up");
  server_.ledger = {row};
  EXPECT_THAT(Ask({"events"}).out, HasSubstr("  berlin-1  berlin-1\n"));
  EXPECT_EQ(json::parse(Ask({"events", "--json"}).out)[0]["client_name"], "berlin-1");
  EXPECT_THAT(Ask({"ledger"}).out, HasSubstr("    1  berlin-1  up "));
  EXPECT_EQ(json::parse(Ask({"ledger", "--json"}).out)[0]["client_name"], "berlin-1");
  server_.events[0].clear_client_name();  // a coordinator of an earlier release
  EXPECT_THAT(Ask({"events"}).out, HasSubstr("  #3 "));
}

TEST_F(TersectlTest, RoundsSayWhy) {
  EXPECT_THAT(Ask({"rounds", "--why"}).out, HasSubstr("as in the run file"));
  for (v1::Round& round : server_.rounds) {
    round.set_local_steps(7 * round.id());
    round.set_choice(4);
    round.set_why("5 bits: kept");
  }
  EXPECT_THAT(Ask({"rounds", "--why"}).out, HasSubstr("14       4"));
  EXPECT_THAT(Ask({"rounds", "--why"}).out, HasSubstr("5 bits: kept\n"));
  EXPECT_EQ(json::parse(Ask({"rounds", "--json"}).out)[1]["local_steps"], 14);
  EXPECT_EQ(json::parse(Ask({"summary", "--json"}).out)["iterations"], 7 + 14 + 21);
}

TEST_F(TersectlTest, RoundsSelects) {
  EXPECT_EQ(json::parse(Ask({"rounds", "--json", "--first", "2", "--last", "2"}).out).size(), 1u);
  const json newest = json::parse(Ask({"rounds", "--json", "--newest", "2"}).out);
  ASSERT_EQ(newest.size(), 2u);
  EXPECT_EQ(newest[0]["id"], 2);
  EXPECT_EQ(json::parse(Ask({"rounds", "--json", "--newest", "9"}).out).size(), 3u);
  EXPECT_EQ(json::parse(Ask({"rounds", "--json", "--first", "18446744073709551615"}).out).size(), 0u);
}

TEST_F(TersectlTest, LongRunsComeInPages) {
  SetRounds(10000);
  const json rounds = json::parse(Ask({"rounds", "--json"}).out);
  ASSERT_EQ(rounds.size(), 10000u);
  for (size_t i = 0; i < rounds.size(); ++i) ASSERT_EQ(rounds[i]["id"], i + 1);
  EXPECT_EQ(server_.page_calls, 3);
}

TEST_F(TersectlTest, LedgerOfAWideFleetComesRoundByRound) {
  server_.status.set_clients_known(1000000);
  for (uint64_t round = 1; round <= 3; ++round) {
    v1::LedgerRow row;
    row.set_round(round);
    row.set_direction("up");
    row.set_wire_bytes(9007199254740993);
    server_.ledger.push_back(row);
  }
  const CtlOutcome all = Ask({"ledger", "--json"});
  ASSERT_EQ(json::parse(all.out).size(), 3u);
  EXPECT_THAT(all.out, HasSubstr("\"wire_bytes\": 9007199254740993"));
  EXPECT_EQ(json::parse(Ask({"ledger", "--json", "--first", "2", "--last", "3"}).out).size(), 2u);
  EXPECT_THAT(Ask({"ledger"}).out, HasSubstr("    1  #0      up           0 B      0 B  9.01 PB\n"));
}

TEST_F(TersectlTest, ClientsAndEvents) {
  v1::Client client;
  client.set_name("alpha");
  client.set_connected(true);
  client.set_state("training");
  client.set_wire_bytes_up(1724320);
  client.set_samples(600);
  client.set_reliability(0.75);
  client.set_set_aside_until_us(1'700'000'000'000'000);
  client.set_set_aside_reason("10 failures in a row");
  server_.clients.push_back(client);
  EXPECT_THAT(Ask({"clients"}).out, HasSubstr("alpha   training  "));
  const std::vector<std::string> wide = {"clients", "--wide"};
  EXPECT_THAT(Ask(wide).out,
              AllOf(HasSubstr("600"), HasSubstr("0.7500"), HasSubstr(": 10 failures in a row"), HasSubstr(" +0000: ")));
  const json row = json::parse(Ask({"clients", "--json"}).out)[0];
  EXPECT_EQ(row["wire_bytes_up"], 1724320);
  EXPECT_TRUE(row["device"].is_null() && row["residual_norm"].is_null()) << row;
  EXPECT_THAT(Ask(wide).out, HasSubstr("device  residual"));
  EXPECT_THAT(Ask(wide).out, HasSubstr("  -              -  "));
  server_.clients[0].set_device("cuda:0");
  server_.clients[0].set_residual_norm(1.189207115);
  EXPECT_THAT(Ask(wide).out, HasSubstr("  cuda:0       1.2  "));
  EXPECT_EQ(json::parse(Ask({"clients", "--json"}).out)[0]["device"], "cuda:0");
  EXPECT_EQ(json::parse(Ask({"clients", "--json"}).out)[0]["residual_norm"], 1.189207115);
  // A relay has columns of its own.
  EXPECT_THAT(Ask(wide).out, AllOf(HasSubstr("below  below up  below down"), Not(HasSubstr("1,234"))));
  v1::TreeBelow below;
  below.set_clients(1234);
  below.set_wire_bytes_up(5'000'000);
  *server_.clients[0].mutable_below() = below;
  EXPECT_THAT(Ask(wide).out, AllOf(HasSubstr(" 1234 "), HasSubstr(" 5.00 MB ")));
  EXPECT_EQ(json::parse(Ask({"clients", "--json"}).out)[0]["below"]["wire_bytes_up"], 5'000'000);
  server_.clients[0].set_version(77);
  server_.clients[0].set_steps_done(88);
  EXPECT_THAT(Ask(wide).out, AllOf(HasSubstr(" 77 "), HasSubstr(" 88 ")));
  server_.clients[0].set_connected(false);  // what it left behind is not where it stands
  EXPECT_THAT(Ask(wide).out, Not(AnyOf(HasSubstr(" 77 "), HasSubstr(" 88 "))));
  for (int i = 0; i < 3; ++i) {
    v1::Event event;
    event.set_kind(absl::StrCat("kind", i));
    event.set_client(-1);
    server_.events.push_back(event);
  }
  EXPECT_EQ(json::parse(Ask({"events", "--json"}).out).size(), 3u);
  const json newest = json::parse(Ask({"events", "--json", "--newest", "1"}).out);
  ASSERT_EQ(newest.size(), 1u);
  EXPECT_EQ(newest[0]["kind"], "kind2");
  EXPECT_THAT(Ask({"events"}).out, HasSubstr("kind1"));
}

TEST_F(TersectlTest, WatchEndsWithTheRun) {
  const CtlOutcome watched = Ask({"watch"});
  EXPECT_EQ(watched.code, kExitOk) << watched.err;
  const std::vector<std::string> lines = absl::StrSplit(watched.out, '\n');
  ASSERT_EQ(lines.size(), 6u) << watched.out;
  EXPECT_THAT(lines[0], HasSubstr("compression"));
  EXPECT_THAT(lines[1], HasSubstr("1/3    0.9100"));
  EXPECT_THAT(lines[3], HasSubstr("3/3    0.9300"));
  EXPECT_EQ(lines[4], "run lenet5-sbc2 ended after 3 of 3 rounds");
  const CtlOutcome late = Ask({"watch", "--first", "3"});
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(late.out, '\n')).size(), 4u) << late.out;
}

TEST_F(TersectlTest, ProgressInIterationsWhereTheyEndTheRun) {
  server_.status.mutable_config()->mutable_limits()->set_iterations(35);
  server_.status.set_iterations(30);
  EXPECT_THAT(Ask({"status"}).out, HasSubstr("iterations        30 of 35\n"));
  EXPECT_THAT(Ask({"watch"}).out, HasSubstr("run lenet5-sbc2 ended after 3 rounds, 30 of 35 iterations\n"));
}

TEST_F(TersectlTest, WatchGoesOnAfterTheCoordinatorWasAway) {
  server_.watch_breaks = 2;
  server_.watch_overlap = 1;  // a round that was printed already comes again
  const CtlOutcome watched = Ask({"watch", "--json", "--first", "1"});
  EXPECT_EQ(watched.code, kExitOk) << watched.err;
  EXPECT_THAT(watched.err, HasSubstr("calling again"));
  std::vector<int> ids;
  for (const auto line : absl::StrSplit(watched.out, '\n', absl::SkipEmpty())) {
    ids.push_back(json::parse(line.begin(), line.end())["id"].get<int>());
  }
  EXPECT_THAT(ids, ElementsAre(1, 2, 3));
}

TEST_F(TersectlTest, WatchGivesUpWhenItsPatienceEnds) {
  server_.watch_breaks = 1000;
  server_.rounds.resize(1);
  EXPECT_EQ(Ask({"watch", "--patience", "0"}).code, kExitUnreachable);
}

TEST_F(TersectlTest, Stop) {
  EXPECT_EQ(Ask({"stop"}).out, "stopping\n");
  EXPECT_TRUE(server_.stopped);
  EXPECT_FALSE(server_.shut_down);
  EXPECT_EQ(json::parse(Ask({"stop", "--shutdown", "--json"}).out)["state"], "stopping");
  EXPECT_TRUE(server_.shut_down);
}

TEST_F(TersectlTest, RunsAndTheRunThatIsMeant) {
  v1::Run run;
  run.set_name("lenet5");
  run.set_state("active");
  run.set_phase("suspended: the disk is full");
  run.set_version(7);
  run.set_rounds_total(20);
  server_.runs = {run, run};
  server_.runs[1].set_name("other");
  EXPECT_THAT(Ask({"runs"}).out,
              HasSubstr("lenet5  active    7/20         -     -   -     -     -  suspended: the disk is full\n"));
  EXPECT_EQ(json::parse(Ask({"runs", "--json"}).out)[1]["name"], "other");
  EXPECT_EQ(Ask({"runs", "--names"}).out, "lenet5\nother\n");
  EXPECT_EQ(Ask({"run", "list", "--names"}).out, "lenet5\nother\n");
  Ask({"status", "--run", "other"});
  EXPECT_EQ(server_.asked_run, "other");
  Ask({"--run", "lenet5", "pause"});
  EXPECT_EQ(server_.asked_run, "lenet5");
  Ask({"status"});
  EXPECT_EQ(server_.asked_run, "");
}

TEST_F(TersectlTest, PauseResumeAndAbort) {
  EXPECT_EQ(Ask({"pause", "--reason", "new data"}).out, "paused\n");
  EXPECT_EQ(server_.asked_reason, "new data");
  EXPECT_EQ(json::parse(Ask({"resume", "--json"}).out)["state"], "active");
  EXPECT_EQ(Ask({"abort", "--reason", "a client hangs"}).out, "round 3 is given up; the run goes on\n");
  EXPECT_EQ(server_.asked_reason, "a client hangs");
  EXPECT_EQ(json::parse(Ask({"abort", "--json"}).out)["round"], 3);
  server_.status.set_round(0);
  const CtlOutcome none = Ask({"abort"});
  EXPECT_EQ(none.code, kExitFailed);
  EXPECT_THAT(none.err, HasSubstr("no round is open"));
}

TEST_F(TersectlTest, ClientsAreSetAsideAndReadmitted) {
  const CtlOutcome aside = Ask({"clients", "--set-aside", "alpha", "--for", "90", "--reason", "odd updates"});
  EXPECT_EQ(aside.code, kExitOk) << aside.err;
  EXPECT_THAT(aside.out, StartsWith("alpha is set aside until 2023-11-"));
  EXPECT_EQ(server_.asked_set_aside.client(), "alpha");
  EXPECT_EQ(server_.asked_set_aside.seconds(), 90);
  EXPECT_EQ(server_.asked_set_aside.reason(), "odd updates");
  EXPECT_EQ(Ask({"clients", "--readmit", "alpha"}).out, "alpha may take part\n");
  EXPECT_EQ(server_.asked_set_aside.seconds(), 0);
  EXPECT_EQ(json::parse(Ask({"clients", "--readmit", "alpha", "--json"}).out)["set_aside_until_us"], 0);
  EXPECT_EQ(Ask({"clients", "--readmit", "alpha", "--set-aside", "beta"}).code, kExitUsage);
  EXPECT_EQ(Ask({"clients", "--for", "90"}).code, kExitUsage);
  EXPECT_EQ(Ask({"clients", "--set-aside", "beta", "--for", "0"}).code, kExitUsage);
}

TEST_F(TersectlTest, ExportWritesEveryFile) {
  const TempDirectory directory;
  const std::string out = directory.path() + "/a/b";
  const CtlOutcome exported = Ask({"export", "--out", out});
  EXPECT_EQ(exported.code, kExitOk) << exported.err;
  EXPECT_EQ(Slurp(out + "/model.pt"), server_.torchscript);
  EXPECT_EQ(Slurp(out + "/model.safetensors"), server_.safetensors);
  EXPECT_EQ(Slurp(out + "/model.npz"), server_.npz);
  EXPECT_EQ(Slurp(out + "/rounds.csv"), Ask({"rounds", "--csv"}).out);
  EXPECT_EQ(Slurp(out + "/summary.json"), Ask({"summary", "--json"}).out);
  EXPECT_THAT(Slurp(out + "/accuracy_vs_bytes.svg"), HasSubstr("lenet5-sbc2: accuracy against bytes sent"));
  EXPECT_EQ(Slurp(out + "/tensorboard/events.out.tfevents.terse"), TensorBoardEvents(server_.status, server_.rounds));
  EXPECT_THAT(exported.out, HasSubstr("run lenet5-sbc2"));
  EXPECT_THAT(exported.out, HasSubstr(out + "/model.pt\n"));
}

TEST_F(TersectlTest, ExportOfATextHasItsVocabulary) {
  server_.vocabulary = "[\n\"a\"\n]\n";
  for (const std::string format : {"all", "torchscript", "state", "npz"}) {
    const TempDirectory directory;
    const CtlOutcome exported = Ask({"export", "--out", directory.path(), "--format", format});
    EXPECT_EQ(exported.code, kExitOk) << exported.err;
    EXPECT_EQ(Slurp(directory.path() + "/vocabulary.json"), server_.vocabulary) << format;
  }
  server_.vocabulary.clear();
  const TempDirectory directory;
  EXPECT_EQ(Ask({"export", "--out", directory.path()}).code, kExitOk);
  EXPECT_FALSE(std::filesystem::exists(directory.path() + "/vocabulary.json"));
}

TEST_F(TersectlTest, ExportFromAnEarlierCoordinatorHasNoVocabulary) {
  server_.knows_vocabulary = false;
  const TempDirectory directory;
  const CtlOutcome exported = Ask({"export", "--out", directory.path()});
  EXPECT_EQ(exported.code, kExitOk) << exported.err;
  EXPECT_EQ(Slurp(directory.path() + "/model.npz"), server_.npz);
}

TEST_F(TersectlTest, ExportOfOneFormat) {
  const TempDirectory directory;
  server_.torchscript.clear();  // the coordinator cannot make this one
  const CtlOutcome state = Ask({"export", "--out", directory.path(), "--format", "state", "--json"});
  EXPECT_EQ(state.code, kExitOk) << state.err;
  EXPECT_EQ(json::parse(state.out)["files"].size(), 5u);
  EXPECT_FALSE(std::filesystem::exists(directory.path() + "/tensorboard"));
  const CtlOutcome curves = Ask({"export", "--out", directory.path() + "/c", "--format", "tensorboard", "--json"});
  EXPECT_EQ(curves.code, kExitOk) << curves.err;
  EXPECT_EQ(json::parse(curves.out)["files"].size(), 5u);
  EXPECT_TRUE(std::filesystem::exists(directory.path() + "/c/tensorboard/events.out.tfevents.terse"));
  const TempDirectory other;
  const CtlOutcome all = Ask({"export", "--out", other.path() + "/x"});
  EXPECT_EQ(all.code, kExitFailed);
  EXPECT_THAT(all.err, HasSubstr("no exporter for this format"));
  EXPECT_FALSE(std::filesystem::exists(other.path() + "/x"));  // nothing is written before all is there
}

TEST_F(TersectlTest, ExportRejectsABrokenStream) {
  const TempDirectory directory;
  server_.announced_beyond = 1;
  const CtlOutcome cut = Ask({"export", "--out", directory.path()});
  EXPECT_EQ(cut.code, kExitFailed);
  EXPECT_THAT(cut.err, HasSubstr("sent 17 of 18 bytes of the model file; export again"));
  server_.announced_beyond = static_cast<uint64_t>(-3);
  EXPECT_THAT(Ask({"export", "--out", directory.path()}).err, HasSubstr("sent more than the 14 bytes"));
  server_.announced_beyond = uint64_t{1} << 40;
  EXPECT_THAT(Ask({"export", "--out", directory.path()}).err, HasSubstr("are plausible"));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Tersectl, NoCoordinator) {
  const CtlOutcome outcome = Invoke({"--admin", "127.0.0.1:1", "status"});
  EXPECT_EQ(outcome.code, kExitUnreachable);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, StartsWith("tersectl: the coordinator at 127.0.0.1:1 does not answer"));
  EXPECT_THAT(outcome.err, HasSubstr("does not answer (nobody listens there); check"));
  EXPECT_THAT(outcome.err, HasSubstr("--admin or TERSE_ADMIN"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("unix:")));
  // The default, where --state named another folder.
  EXPECT_THAT(
      Invoke({"--admin", "unix:/none/x.sock", "status"}).err,
      AllOf(HasSubstr("(there is no such socket)"), HasSubstr("unix:STATE/admin.sock for a coordinator with --state")));
}

// The address for clients, which is the first that comes to mind.
TEST(Tersectl, ACoordinatorThatServesNoOperatorsThere) {
  v1::Fleet::Service fleet;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&fleet);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const CtlOutcome outcome = Invoke({"--admin", absl::StrCat("127.0.0.1:", port), "status"});
  server->Shutdown();
  EXPECT_EQ(outcome.code, kExitFailed);
  EXPECT_THAT(outcome.err, StartsWith(absl::StrCat("tersectl: the coordinator at 127.0.0.1:", port,
                                                   " does not take this command there: if that is its address for "
                                                   "clients (--listen), give the address of its admin service")));
}

TEST(Tersectl, AddressesThatAreNone) {
  for (const char* bad : {"127.0.0.1:99999", "127.0.0.1", "127.0.0.1:0"}) {
    const CtlOutcome outcome = Invoke({"--admin", bad, "status"});
    EXPECT_EQ(outcome.code, kExitUsage) << bad;
    EXPECT_THAT(outcome.err, StartsWith("tersectl: --admin: ")) << bad;
    EXPECT_EQ(Invoke({"--admin", bad, "config"}).code, kExitOk) << "which asks no coordinator";
  }
  EXPECT_EQ(Invoke({"--admin", "127.0.0.1:99999", "run", "create", "--run-file", "x"}).code, kExitUsage);
  EXPECT_EQ(Invoke({"--admin", "127.0.0.1:99999", "run", "diff", "a", "b"}).code, kExitUsage);
}

TEST(Tersectl, AddressFromTheEnvironment) {
  setenv("TERSE_ADMIN", "127.0.0.1:2", 1);
  EXPECT_THAT(Invoke({"status"}).err, HasSubstr("127.0.0.1:2"));
  EXPECT_THAT(Invoke({"status", "--admin", "127.0.0.1:3"}).err, HasSubstr("127.0.0.1:3"));
  unsetenv("TERSE_ADMIN");
}

TEST(Tersectl, WrongUsage) {
  const CtlOutcome bare = Invoke({});
  EXPECT_EQ(bare.code, kExitUsage);
  EXPECT_THAT(bare.err, AllOf(HasSubstr("Usage: tersectl"), HasSubstr("summary")));
  EXPECT_EQ(Invoke({"help"}).code, kExitOk);
  EXPECT_EQ(Invoke({"help", "pki", "issue"}).out, Invoke({"pki", "issue", "--help"}).out);
  EXPECT_EQ(Invoke({"rounds", "--first", "x"}).code, kExitUsage);
  EXPECT_EQ(Invoke({"rounds", "--newest", "-1"}).err,
            "tersectl: --newest: -1 is too small; give a whole number, 0 or more\n");
  EXPECT_EQ(Invoke({"events", "--newest", "10001"}).err,
            "tersectl: --newest: 10001 is too large; give a whole number, from 1 to 10000\n");
  EXPECT_EQ(Invoke({"export"}).code, kExitUsage);
  const CtlOutcome format = Invoke({"export", "--out", "x", "--format", "onnx"});
  EXPECT_EQ(format.code, kExitUsage);
  EXPECT_EQ(format.err,
            "tersectl: --format: 'onnx' is not allowed; give torchscript, state, npz, tensorboard or all\n");
  EXPECT_EQ(Invoke({"statsu"}).err,
            "tersectl: there is no command 'statsu'; did you mean 'status'? see `tersectl --help`\n");
  const CtlOutcome unknown = Invoke({"frobnicate"});
  EXPECT_EQ(unknown.code, kExitUsage);
  EXPECT_THAT(unknown.err, HasSubstr("--help"));
  EXPECT_EQ(Invoke({"--help"}).code, kExitOk);
  EXPECT_EQ(Invoke({"--version"}).code, kExitOk);
}

TEST(Tersectl, ValidateAndConfig) {
  const std::string good = InSource("deploy/runs/lenet5-sbc2.toml");
  const CtlOutcome valid = Invoke({"validate", good});
  EXPECT_EQ(valid.code, kExitOk) << valid.err;
  EXPECT_THAT(valid.out, HasSubstr("200 rounds of 10 local steps, 4 clients, codec sbc"));
  EXPECT_EQ(json::parse(Invoke({"validate", "--json", good}).out)["config"]["codec"]["density"], 0.01);
  const json reply = json::parse(Invoke({"validate", "--json", good}).out);
  EXPECT_EQ(reply["valid"], true);
  EXPECT_EQ(reply["traffic"]["per_million_parameters"], true);
  EXPECT_GT(reply["traffic"]["bytes_up_per_client_round"].get<double>(), 0);
  const TempDirectory directory;
  const std::string bad = directory.path() + "/bad.toml";
  std::ofstream(bad) << "name = 'r'\nseeds = 1\n";
  const CtlOutcome invalid = Invoke({"validate", bad});
  EXPECT_EQ(invalid.code, kExitInvalidRun);
  EXPECT_THAT(invalid.err, StartsWith("tersectl: " + bad + ":2: seeds is not a known key; did you mean 'seed'?"));
  EXPECT_EQ(Invoke({"validate", directory.path() + "/none.toml"}).code, kExitFailed);
}

TEST(Tersectl, ValidateListsEveryError) {
  const TempDirectory directory;
  const std::string bad = directory.path() + "/bad.toml";
  std::ofstream(bad) << "name = 'r.partial'\nseeds = 1\n[model]\nname = 'word_lstm'\n[train]\nlocal_steps = 'ten'\n"
                        "[train.optimizer]\nlearning_rate = 0\n[codec]\nname = 'sbc'\n[rounds]\ncount = 3\n"
                        "clients = 2\nquorum = 3\n";
  const CtlOutcome invalid = Invoke({"run", "validate", bad});
  EXPECT_EQ(invalid.code, kExitInvalidRun);
  for (const char* place :
       {":2: seeds is not", ":6: train.local_steps is a string", ":8: train.optimizer.learning_rate",
        ":14: rounds.quorum = 3", ":4: model.name = 'word_lstm' takes texts",
        ":1: name = 'r.partial' ends with .partial", ": 6 errors\n"}) {
    EXPECT_THAT(invalid.err, HasSubstr(bad + place));
  }
  const CtlOutcome listed = Invoke({"run", "validate", "--json", bad});
  EXPECT_EQ(listed.code, kExitInvalidRun);
  const json reply = json::parse(listed.out);
  EXPECT_EQ(reply["valid"], false);
  ASSERT_EQ(reply["errors"].size(), 6u);
  EXPECT_EQ(reply["errors"][0]["key"], "seeds");
  EXPECT_EQ(reply["errors"][0]["line"], 2);
  const CtlOutcome odd = Invoke({"run", "validate", "--json", directory.path() + "/l\xe4uft.toml"});
  EXPECT_EQ(odd.code, kExitFailed);
  EXPECT_EQ(json::parse(odd.out)["file"], directory.path() + "/l\xef\xbf\xbduft.toml") << "a name that is not UTF-8";
  const CtlOutcome absent = Invoke({"run", "validate", "--json", directory.path() + "/none.toml"});
  EXPECT_EQ(absent.code, kExitFailed);
  EXPECT_EQ(json::parse(absent.out)["valid"], false);
}

TEST(Tersectl, ConfigDescribesKeys) {
  EXPECT_THAT(Invoke({"config"}).out, HasSubstr("codec.density"));
  const json keys = json::parse(Invoke({"config", "--json"}).out);
  EXPECT_EQ(keys[0], json({{"key", "name"},
                           {"type", "string"},
                           {"default", "required"},
                           {"allowed", ""},
                           {"description", "Name of the run: letters, digits, '-', '_' and '.', at most 64."}}));
  EXPECT_EQ(json::parse(Invoke({"config", "checkpoints", "--json"}).out).size(), 2u);
  const std::string one = Invoke({"config", "checkpoints.keep"}).out;
  EXPECT_THAT(one, HasSubstr("\n    Checkpoint files to keep.\n"));
  EXPECT_THAT(one, ::testing::Not(HasSubstr("checkpoints.every")));
  const CtlOutcome unknown = Invoke({"config", "wheels"});
  EXPECT_EQ(unknown.code, kExitFailed);
  EXPECT_THAT(unknown.err, HasSubstr("'wheels' is neither a key nor a table"));
  EXPECT_THAT(Invoke({"config", "--markdown"}).out, StartsWith("# Run files\n"));
}

}  // namespace
}  // namespace terse
