// tersectl run compare: runs side by side, from a coordinator and from folders that were exported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tersectl/comparison.h"
#include "tersectl/svg_plot.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class CompareTest : public ::testing::Test {
 protected:
  CompareTest() {
    // Ten rounds each; the second run sends a hundred times as much and gets a little further.
    AddRun("sbc", 1'000'000, 0.90, "sbc");
    AddRun("dense", 100'000'000, 0.95, "dense");
  }

  void AddRun(const std::string& name, uint64_t bytes, double best, const std::string& codec) {
    FakeAdminServer::Held& held = server_.several[name];
    held.status.set_run(name);
    held.status.set_state("finished");
    held.status.set_round(10);
    held.status.mutable_config()->set_name(name);
    held.status.mutable_config()->mutable_codec()->set_name(codec);
    held.status.mutable_config()->mutable_rounds()->set_clients(4);
    for (uint64_t id = 1; id <= 10; ++id) {
      v1::Round round;
      round.set_id(id);
      round.set_state("committed");
      round.set_opened_us(static_cast<int64_t>(id) * 1'000'000);
      round.set_committed_us(static_cast<int64_t>(id) * 1'000'000 + 500'000);
      round.set_dense_bytes_up(400'000'000);
      round.set_wire_bytes_up(bytes);
      round.set_wire_bytes_down(2 * bytes);
      round.set_accuracy(best * static_cast<double>(id) / 10);
      round.set_test_loss(1 / static_cast<double>(id));
      round.set_why("said \"so\", twice");
      held.rounds.push_back(round);
    }
  }

  CtlOutcome Ask(const std::vector<std::string>& arguments) { return InvokeAt(server_.address(), arguments); }

  FakeAdminServer server_;
  TempDirectory directory_;
};

TEST_F(CompareTest, SettingsFiguresAndCosts) {
  const CtlOutcome compared = Ask({"run", "compare", "sbc", "dense"});
  EXPECT_EQ(compared.code, kExitOk) << compared.err;
  EXPECT_THAT(compared.out, ContainsRegex("setting +sbc +dense\ncodec.name +\"sbc\" +\"dense\"\n"));
  EXPECT_THAT(compared.out, Not(HasSubstr("rounds.clients")));
  EXPECT_THAT(compared.out, ContainsRegex("\naccuracy +0.9000 +0.9500\n"));
  EXPECT_THAT(compared.out, ContainsRegex("\nup, on the wire +10.0 MB +1.00 GB\n"));
  EXPECT_THAT(compared.out, ContainsRegex("\ncompression up +x400 +x4.00\n"));
  EXPECT_THAT(compared.out, ContainsRegex("\ntime +9.5 s +9.5 s\n"));
  // 80, 90, 95 and 100% of 0.9, which both reach.
  for (const char* row : {"0.72: up +8.00 MB +800 MB", "0.72: both ways +24.0 MB +2.40 GB", "0.855: round +10 +9",
                          "0.9: up +10.0 MB +1.00 GB", "0.81: time +8.5 s +8.5 s"}) {
    EXPECT_THAT(compared.out, ContainsRegex(absl::StrCat("\n", row, "\n")));
  }
  EXPECT_THAT(compared.out, HasSubstr("80, 90, 95 and 100% of 0.9000, the best that every run reached"));
}

TEST_F(CompareTest, AccuraciesThatWereAskedFor) {
  const CtlOutcome reached = Ask({"run", "compare", "sbc", "dense", "--accuracy", "0.85", "--accuracy", "0.5"});
  EXPECT_EQ(reached.code, kExitOk) << reached.err;
  EXPECT_THAT(reached.out, ContainsRegex("0.5: up +6.00 MB +600 MB\n(.*\n)*0.85: up"));
  EXPECT_THAT(reached.out, Not(HasSubstr("80, 90")));
  const CtlOutcome missed = Ask({"run", "compare", "sbc", "dense", "--accuracy", "0.93"});
  EXPECT_EQ(missed.code, kExitFailed);
  EXPECT_THAT(missed.out, ContainsRegex("0.93: up +- +1.00 GB\n")) << "what there is is shown all the same";
  EXPECT_EQ(missed.err, "tersectl: sbc does not reach accuracy 0.93\n");
  EXPECT_EQ(Ask({"run", "compare", "sbc", "dense", "--accuracy", "97"}).code, kExitUsage);
}

TEST_F(CompareTest, ForPrograms) {
  const CtlOutcome compared = Ask({"run", "compare", "sbc", "dense", "--json", "--accuracy", "0.93"});
  const json reply = json::parse(compared.out);
  EXPECT_EQ(reply["runs"][1]["label"], "dense");
  EXPECT_EQ(reply["runs"][1]["summary"]["wire_bytes_up"], 1'000'000'000);
  EXPECT_EQ(reply["runs"][0]["best_accuracy"], 0.9);
  EXPECT_EQ(reply["settings"], json::parse(R"([{"key": "codec.name", "values": ["sbc", "dense"]}])"));
  EXPECT_TRUE(reply["accuracies"][0]["runs"][0].is_null());
  EXPECT_EQ(reply["accuracies"][0]["runs"][1]["round"], 10);
  EXPECT_EQ(reply["accuracies"][0]["runs"][1]["wire_bytes_down"], 2'000'000'000);
}

TEST_F(CompareTest, ExportedFoldersAreLikeTheirRuns) {
  std::vector<std::string> folders;
  for (const char* name : {"sbc", "dense"}) {
    folders.push_back(directory_.path() + "/" + name);
    const CtlOutcome exported =
        Ask({"export", "--run", name, "--out", folders.back(), "--format", "tensorboard", "--json"});
    ASSERT_EQ(exported.code, kExitOk) << exported.err;
  }
  json of_folders = json::parse(Invoke({"run", "compare", folders[0], folders[1], "--json"}).out);
  json of_runs = json::parse(Ask({"run", "compare", "sbc", "dense", "--json"}).out);
  for (json* reply : {&of_folders, &of_runs}) {
    for (json& run : (*reply)["runs"]) run.erase("label");
  }
  EXPECT_EQ(of_folders, of_runs);
  // One of an earlier release has no settings, and mixed with a run of the coordinator it is compared all the same.
  std::filesystem::remove(folders[0] + "/config.json");
  const CtlOutcome mixed = Ask({"run", "compare", folders[0], "dense"});
  EXPECT_EQ(mixed.code, kExitOk) << mixed.err;
  EXPECT_THAT(mixed.out, HasSubstr("/sbc are not known: the folder has no config.json."));
  EXPECT_THAT(mixed.out, Not(HasSubstr("No setting differs")));
  std::ofstream(folders[1] + "/rounds.csv", std::ios::app) << "eleven,committed\n";
  const CtlOutcome damaged = Invoke({"run", "compare", folders[0], folders[1]});
  EXPECT_EQ(damaged.code, kExitUsage);
  EXPECT_THAT(damaged.err, HasSubstr("rounds.csv: row 11 is none of a round"));
}

TEST_F(CompareTest, SameSettingsAndRunsWithoutAccuracies) {
  for (const char* name : {"a", "b"}) {
    AddRun(name, 1000, 0.5, "sbc");
    for (v1::Round& round : server_.several[name].rounds) round.clear_accuracy();
  }
  const CtlOutcome compared = Ask({"run", "compare", "a", "b", "a"});
  EXPECT_EQ(compared.code, kExitOk) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("No setting differs.\n"));
  EXPECT_THAT(compared.out, ContainsRegex("\naccuracy +- +- +-\n"));
  EXPECT_THAT(compared.out, ContainsRegex("\nbest test loss +0.1000 +0.1000 +0.1000\n"));
  EXPECT_THAT(compared.out, HasSubstr("No run has an accuracy to reach.\n"));
}

TEST_F(CompareTest, TroubleHasItsCodes) {
  EXPECT_EQ(Ask({"run", "compare", "sbc"}).code, kExitUsage);
  const CtlOutcome unknown = Ask({"run", "compare", "sbc", "none"});
  EXPECT_EQ(unknown.code, kExitUsage);
  EXPECT_THAT(unknown.err, HasSubstr("there is no such run"));
  EXPECT_EQ(Invoke({"--admin", "127.0.0.1:1", "run", "compare", "a", "b"}).code, kExitUnreachable);
  EXPECT_EQ(Ask({"run", "compare", "sbc", "dense", "--svg", directory_.path() + "/none/a.svg"}).code, kExitFailed);
}

TEST_F(CompareTest, OnePictureOfAll) {
  const std::string file = directory_.path() + "/runs.svg";
  const CtlOutcome drawn = Ask({"run", "compare", "sbc", "dense", "--svg", file});
  EXPECT_EQ(drawn.code, kExitOk) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("\nwritten: " + file + "\n"));
  const std::string svg = Slurp(file);
  for (const char* part : {"<g class=\"run0\">\n<polyline", "<g class=\"run1\">\n<polyline", ">sbc</text>",
                           ">dense</text>", "<title>round 10, 10.0 MB: 0.9000</title>", ">test accuracy</text>"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
  const std::string losses = ComparisonPlot("a & b", {{"<a>", {{1, 10, {}, 0.5}, {2, 20, {}, 0.25}}}, {"b", {}}});
  EXPECT_THAT(losses, HasSubstr("test loss"));
  EXPECT_THAT(losses, HasSubstr("&lt;a&gt;"));
  EXPECT_THAT(losses, Not(HasSubstr("<g class=\"run1\">\n<polyline"))) << "nothing of b can be drawn";
  EXPECT_THAT(ComparisonPlot("t", {{"a", {}}}), HasSubstr("No round has been evaluated yet"));
}

TEST(RoundsFromCsv, ReadsWhatExportWrites) {
  v1::Round round;
  round.set_id(7);
  round.set_state("aborted");
  round.set_opened_us(5);
  round.set_wire_bytes_up(9007199254740993);
  round.set_test_loss(0.1);
  round.set_why("a \"quoted\", long\nreason");
  const absl::StatusOr<std::vector<v1::Round>> read = RoundsFromCsv(RoundsCsv({round, round}));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[1].id(), 7u);
  EXPECT_EQ((*read)[1].wire_bytes_up(), 9007199254740993u);
  EXPECT_EQ((*read)[1].test_loss(), 0.1);
  EXPECT_FALSE((*read)[1].has_accuracy());
  EXPECT_FALSE((*read)[1].has_committed_us());
  for (const char* bad : {"id,state\n1\n", "id,state\nx,open\n", "state\nopen\n", "id,accuracy\n1,high\n"}) {
    EXPECT_EQ(RoundsFromCsv(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace terse
