#include "proto/run_config_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compression/codec_table.h"
#include "compression/feedback_table.h"
#include "compression/position_coder_table.h"
#include "compression/run_codecs.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_rules.h"
#include "tests/proto/least_run.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;

TEST(ParseRunConfig, FillsDefaultsOfAbsentKeysAndTables) {
  const v1::RunConfig config = Least();
  EXPECT_EQ(config.name(), "r");
  EXPECT_EQ(config.seed(), 1);
  EXPECT_EQ(config.durability(), "strict");
  EXPECT_EQ(config.model().name(), "lenet5_caffe");
  EXPECT_EQ(config.data().partition(), "iid");
  EXPECT_EQ(config.train().batch_size(), 128);
  EXPECT_EQ(config.train().optimizer().epsilon(), 1e-8);
  EXPECT_TRUE(config.train().optimizer().momentum_masking());
  EXPECT_EQ(config.codec().density(), 0.01);
  EXPECT_EQ(config.rounds().deadline_seconds(), 600);
  EXPECT_EQ(config.checkpoints().every(), 50);
  EXPECT_EQ(config.rounds().selection(), "all");
  EXPECT_EQ(config.rounds().fraction(), 1);
  EXPECT_EQ(config.rounds().over_selection(), 0);
  EXPECT_EQ(config.rounds().grace_seconds(), 0);
  EXPECT_EQ(config.rounds().weighting(), "uniform");
  EXPECT_EQ(config.clients().allow_size(), 0);
  EXPECT_EQ(config.clients().set_aside_after(), 10);
  EXPECT_EQ(config.clients().set_aside_seconds(), 600);
  EXPECT_EQ(config.limits().seconds(), 0);
  EXPECT_EQ(config.limits().accuracy(), 0);
  EXPECT_EQ(config.limits().loss(), 0);
}

TEST(ParseRunConfig, ReadsWhatIsGiven) {
  const auto config =
      ParseRunConfig(absl::StrCat("seed = 7\ndurability = 'relaxed'\n", kLeast,
                                  "clients = 9\nquorum = 4\ndeadline_seconds = 30\n[checkpoints]\nkeep = 5\n"),
                     "x.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->seed(), 7);
  EXPECT_EQ(config->durability(), "relaxed");
  EXPECT_EQ(config->rounds().quorum(), 4);
  EXPECT_EQ(config->rounds().deadline_seconds(), 30);  // an integer where a number is wanted
  EXPECT_EQ(config->checkpoints().keep(), 5);
}

TEST(ParseRunConfig, NamesFileLineValueAndRange) {
  EXPECT_EQ(ErrorOf("local_steps = 10", "local_steps = 0"),
            "x.toml:3: train.local_steps = 0 is below the allowed range 1 to 1000000");
  EXPECT_EQ(ErrorOf("local_steps = 10", "local_steps = 1000001"),
            "x.toml:3: train.local_steps = 1000001 is above the allowed range 1 to 1000000");
  EXPECT_EQ(ErrorOf("learning_rate = 0.5", "learning_rate = 0"),
            "x.toml:5: train.optimizer.learning_rate = 0 is below the allowed range above 0, at most 1000");
  EXPECT_THAT(ErrorOf("learning_rate = 0.5", "learning_rate = nan"), HasSubstr("= nan is below"));
  EXPECT_THAT(ErrorOf("learning_rate = 0.5", "learning_rate = inf"), HasSubstr("= inf is above"));
  EXPECT_EQ(ErrorOf("name = 'sbc'", "name = 'sbc'\nmean_precision = 'fp8'"),
            "x.toml:8: codec.mean_precision = 'fp8' is not allowed; use 'fp32' or 'bf16'");
  // Beyond 2^53 a double cannot tell neighbours apart; the integer comparison can.
  EXPECT_EQ(ErrorOf("name = 'r'", "name = 'r'\nseed = 9007199254740993"),
            "x.toml:2: seed = 9007199254740993 is above the allowed range 0 to 9007199254740992");
}

TEST(ParseRunConfig, UnknownKeyNamesTheKnownOnes) {
  EXPECT_EQ(ErrorOf("local_steps", "local_step"),
            "x.toml:3: train.local_step is not a known key; did you mean 'local_steps'? known in [train]: local_steps, "
            "batch_size, optimizer, loss, proximal, unroll, schedule (and 1 more; `tersectl run validate x.toml` lists "
            "them all)");
  EXPECT_THAT(ErrorOf("learning_rate = 0.5", "lr = 0.5"),
              StartsWith("x.toml:5: train.optimizer.lr is not a known key; did you mean 'learning_rate'? known in"));
  EXPECT_THAT(ErrorOf("local_steps = 10", "lr = 0.5\nlocal_steps = 10"),
              StartsWith("x.toml:3: train.lr is not a known key; did you mean 'optimizer.learning_rate'? known in"));
  EXPECT_THAT(ErrorOf("[rounds]", "[wheels]"),
              StartsWith("x.toml:8: wheels is not a known key; known at the top: name, seed, durability, model"));
}

TEST(ParseRunConfig, MissingKeyAndMissingTable) {
  EXPECT_EQ(ErrorOf("local_steps = 10\n", ""), "x.toml:2: train.local_steps is missing; give an integer, 1 to 1000000");
  EXPECT_THAT(ErrorOf("[codec]\nname = 'sbc'\n", ""),
              StartsWith("x.toml: codec.name is missing; give a string, 'sbc', "));
  EXPECT_EQ(ErrorOf("name = 'r'\n", ""), "x.toml: name is missing; give a string");
}

TEST(ParseRunConfig, WrongTypes) {
  EXPECT_EQ(ErrorOf("local_steps = 10", "local_steps = '10'"),
            "x.toml:3: train.local_steps is a string; give an integer, 1 to 1000000");
  EXPECT_THAT(ErrorOf("local_steps = 10", "local_steps = 10.0"), HasSubstr("is a number; give an integer"));
  EXPECT_THAT(ErrorOf("learning_rate = 0.5", "learning_rate = true"), HasSubstr("is true or false; give a number"));
  EXPECT_THAT(ErrorOf("learning_rate = 0.5", "learning_rate = [0.5]"), HasSubstr("is an array; give a number"));
  EXPECT_THAT(ErrorOf("learning_rate = 0.5", "learning_rate = 1979-05-27"), HasSubstr("is a date or time; give"));
  EXPECT_THAT(ErrorOf("learning_rate = 0.5", "learning_rate = 1\nmomentum_masking = 1"),
              HasSubstr("x.toml:6: train.optimizer.momentum_masking is an integer; give true or false"));
  EXPECT_THAT(ErrorOf("[codec]\nname = 'sbc'\n", "[[codec]]\nname = 'sbc'\n"), HasSubstr("is an array; give a table"));
}

TEST(ParseRunConfig, ReadsArraysOfStrings) {
  const auto config =
      ParseRunConfig(absl::StrCat(kLeast, "[clients]\nallow = ['edge-*', \"lab_7.b\", '*', '*a*']\n"), "x.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->clients().allow(), ElementsAre("edge-*", "lab_7.b", "*", "*a*"));
  EXPECT_EQ(ParseRunConfig(absl::StrCat(kLeast, "[clients]\nallow = []\n"), "x.toml")->clients().allow_size(), 0);
}

// Line 10 is [clients], line 11 its first key.
std::string ErrorOfAllow(absl::string_view value) {
  return ErrorOf("count = 3\n", absl::StrCat("count = 3\n[clients]\nallow = ", value, "\n"));
}

TEST(ParseRunConfig, WrongArraysOfStrings) {
  EXPECT_EQ(ErrorOfAllow("'edge'"), "x.toml:11: clients.allow is a string; give an array of strings");
  EXPECT_EQ(ErrorOfAllow("[1, 'b']"), "x.toml:11: clients.allow[0] is an integer; give a string");
  EXPECT_EQ(ErrorOfAllow("[['a']]"), "x.toml:11: clients.allow[0] is an array; give a string");
  EXPECT_EQ(ErrorOfAllow("['a', 2]"), "x.toml:11: clients.allow[1] is an integer; give a string");
  constexpr char kForm[] =
      "' names no client; use 1 to 128 letters, digits, '-', '_', '.' and '*', which stands for any characters";
  EXPECT_EQ(ErrorOfAllow("['a', '']"), absl::StrCat("x.toml:11: clients.allow[1] = '", kForm));
  // The entry's own line, and no raw bytes in the message.
  EXPECT_EQ(ErrorOfAllow("[\n  'good',\n  'b\u00e4z',\n]"),
            absl::StrCat("x.toml:13: clients.allow[1] = 'b\\xc3\\xa4z", kForm));
  for (const char* bad : {"a b", "a/b", "a?", "[a]", "a,b"}) {
    EXPECT_THAT(ErrorOfAllow(absl::StrCat("['", bad, "']")), HasSubstr(kForm)) << bad;
  }
  EXPECT_THAT(ErrorOfAllow(absl::StrCat("['", std::string(129, 'a'), "']")), HasSubstr(kForm));
}

TEST(ParseRunConfig, MistakesOfPeopleWhoWriteTomlByHand) {
  const struct {
    const char* line;
    const char* words;
  } mistakes[] = {
      {"name = demo", "this is not a value: put a text into quotes"},
      {"name = \xe2\x80\x9c"
       "demo\xe2\x80\x9d",
       "this is not a value: put a text into quotes"},
      {"nesterov = True", "write truth values as true and false"},
      {"name = \"demo", "this text does not end: close it with the quote that it begins with"},
      {"name = 'demo", "this text does not end"},
      {"train = \"C:\\data\"", "write a backslash as \\\\"},
      {"[rounds", "this is neither a table, as in [rounds], nor a setting"},
      {"count: 40", "there is no '=' behind the key"},
      {"count =", "there is no value behind the '='"},
      {"rate = 0,5",
       "the line goes on behind its value: write one KEY = VALUE a line, and numbers with a decimal point"},
      {"seed = 01", "bad integer: leading zero"},
  };
  for (const auto& mistake : mistakes) {
    const std::string said(ParseRunConfig(absl::StrCat("\n", mistake.line, "\n"), "x.toml").status().message());
    EXPECT_THAT(said, StartsWith("x.toml:2: ")) << mistake.line;
    EXPECT_THAT(said, HasSubstr(mistake.words)) << mistake.line;
    EXPECT_THAT(said, ::testing::Not(HasSubstr("[error]"))) << mistake.line;
  }
}

TEST(ParseRunConfig, DuplicatesAndSyntax) {
  EXPECT_EQ(ErrorOf("count = 3\n", "count = 3\ncount = 4\n"), "x.toml:10: value (\"count\") already exists.");
  EXPECT_EQ(ErrorOf("count = 3\n", "count = 3\n[codec]\n"), "x.toml:10: table (\"codec\") already exists.");
  EXPECT_THAT(ErrorOf("count = 3", "count ="), StartsWith("x.toml:9: there is no value behind the '='"));
  EXPECT_FALSE(ParseRunConfig("", "x.toml").ok());
  EXPECT_FALSE(ParseRunConfig(std::string(100, '\0'), "x.toml").ok());
}

TEST(ParseRunConfig, TextIsUtf8) {
  EXPECT_EQ(ErrorOf("count = 3", "count = 3  # \xc3\x28"),
            "x.toml:9: byte 0xc3 is not UTF-8; save the file in that encoding");
  EXPECT_EQ(ErrorOf("count = 3", "'a\x87' = 3"), "x.toml:9: byte 0x87 is not UTF-8; save the file in that encoding");
  const std::string commented = absl::StrCat("\xef\xbb\xbf# \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\n", kLeast);
  EXPECT_EQ(ParseRunConfig(commented, "x.toml").status(), absl::OkStatus());
}

TEST(ParseRunConfig, RulesAcrossFields) {
  EXPECT_EQ(ErrorOf("count = 3", "count = 3\nclients = 2\nquorum = 3"),
            "x.toml:11: rounds.quorum = 3 is more than the cohort: 2 of 2 clients; use at most as many, or 0 for half "
            "of them");
  EXPECT_EQ(ErrorOf("count = 3", "count = 3\nclients = 9\nselection = 'random'\nfraction = 0.5\nquorum = 6"),
            "x.toml:13: rounds.quorum = 6 is more than the cohort: 5 of 9 clients; use at most as many, or 0 for half "
            "of them");
  EXPECT_EQ(
      ErrorOf("count = 3", "count = 3\nfraction = 0.5"),
      "x.toml:10: rounds.fraction = 0.5 contradicts rounds.selection = 'all'; choose rounds.selection = 'random', "
      "'samples' or 'reliability', or a fraction of 1");
  EXPECT_EQ(ErrorOf("count = 3", "count = 3\nover_selection = 0.25"),
            "x.toml:10: rounds.over_selection = 0.25 has no one left to give work: rounds.selection = 'all'; choose "
            "rounds.selection = 'random', 'samples' or 'reliability', or an over-selection of 0");
  EXPECT_EQ(
      ErrorOf("count = 3", "count = 3\nclients = 9\n[data]\nshards = 8"),
      "x.toml:12: data.shards = 8 is less than the fleet of 9 clients (rounds.clients); use at least as many, or 0");
  EXPECT_EQ(
      ErrorOf("count = 3", "count = 3\n[data]\npartition = 'all'\nshards = 8"),
      "x.toml:12: data.shards = 8 cuts nothing: with data.partition = 'all' every client has everything. Set it to 0");
  EXPECT_THAT(ErrorOf("name = 'r'", "name = 'a/b'"),
              StartsWith("x.toml:1: name = 'a/b' is not a name of a run; use 1 to 64"));
  EXPECT_THAT(ErrorOf("name = 'r'", "name = '..'"), HasSubstr("not starting with '.'"));
  EXPECT_THAT(ErrorOf("name = 'r'", absl::StrCat("name = '", std::string(65, 'a'), "'")), HasSubstr("1 to 64"));
}

TEST(LoadRunConfig, FileErrors) {
  EXPECT_EQ(LoadRunConfig("/nowhere/x.toml").status().code(), absl::StatusCode::kNotFound);
  const std::string path = absl::StrCat(testing::TempDir(), "/huge.toml");
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  EXPECT_EQ(LoadRunConfig(path).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(LoadRunConfig, RunsOfThePaper) {
  const struct {
    const char* file;
    int64_t local_steps, rounds;
    double density;
    const char *codec, *downstream;
  } kRuns[] = {{"baseline", 1, 2000, 0.01, "dense", "dense"},
               {"fedavg", 100, 20, 0.01, "dense", "dense"},
               {"sbc1", 1, 2000, 0.001, "sbc", "forward"},
               {"sbc2", 10, 200, 0.01, "sbc", "forward"},
               {"sbc3", 100, 20, 0.01, "sbc", "forward"}};
  for (const auto& run : kRuns) {
    const auto config = LoadRunConfig(InSource(absl::StrCat("deploy/runs/lenet5-", run.file, ".toml")));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->name(), absl::StrCat("lenet5-", run.file));
    EXPECT_EQ(config->train().local_steps() * config->rounds().count(), 2000);
    EXPECT_EQ(config->train().local_steps(), run.local_steps);
    EXPECT_EQ(config->rounds().count(), run.rounds);
    EXPECT_EQ(config->rounds().clients(), 4);
    EXPECT_EQ(config->train().batch_size(), 128);
    EXPECT_EQ(config->train().optimizer().learning_rate(), 0.001);
    EXPECT_EQ(config->codec().name(), run.codec);
    EXPECT_EQ(config->codec().density(), run.density);
    EXPECT_EQ(config->codec().downstream(), run.downstream);
  }
}

TEST(ValidateNewRun, RegressionHasNoTargetAccuracy) {
  v1::RunConfig config = Least();
  config.mutable_limits()->set_accuracy(0.9);
  EXPECT_TRUE(ValidateNewRun(config).ok());
  config.mutable_train()->set_loss("mse");
  EXPECT_TRUE(ValidateRunConfig(config).ok()) << "a run of an earlier release, which did not look";
  EXPECT_EQ(ValidateNewRun(config).message(),
            "run config: limits.accuracy = 0.9 can never be reached: with train.loss = 'mse' no prediction is right or "
            "wrong; use limits.loss");
  config.mutable_limits()->set_accuracy(0);
  config.mutable_limits()->set_loss(0.1);
  config.mutable_limits()->set_patience(3);
  EXPECT_TRUE(ValidateNewRun(config).ok());
  config.mutable_limits()->set_patience_metric("accuracy");
  EXPECT_EQ(ValidateNewRun(config).message(),
            "run config: limits.patience_metric = 'accuracy' finds nothing to watch: with train.loss = 'mse' no "
            "prediction is right or wrong; use 'loss'");
}

TEST(ValidateRunConfig, AppliesTheRulesToAMessage) {
  v1::RunConfig config = Least();
  EXPECT_TRUE(ValidateRunConfig(config).ok());
  config.mutable_train()->set_local_steps(-1);
  EXPECT_EQ(ValidateRunConfig(config).message(),
            "run config: train.local_steps = -1 is below the allowed range 1 to 1000000");
  config = Least();
  config.mutable_codec()->set_density(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(ValidateRunConfig(config).code(), absl::StatusCode::kInvalidArgument);
  config = Least();
  config.clear_codec();
  EXPECT_THAT(std::string(ValidateRunConfig(config).message()), HasSubstr("codec.name = '' is not allowed"));
  EXPECT_FALSE(ValidateRunConfig(v1::RunConfig()).ok());
}

// A configuration of a release that had no cohorts, weighting, [clients] and [limits]: their fields are not set.
v1::RunConfig WrittenBefore() {
  v1::RunConfig config = Least();
  config.clear_clients();
  config.clear_limits();
  v1::Rounds* rounds = config.mutable_rounds();
  rounds->clear_selection();
  rounds->clear_fraction();
  rounds->clear_over_selection();
  rounds->clear_grace_seconds();
  rounds->clear_weighting();
  v1::RunConfig stored;
  EXPECT_TRUE(stored.ParseFromString(config.SerializeAsString()));
  return stored;
}

// Runs that began before there were rules go on with the average. Otherwise a configuration is completed to what the
// same file gives today, byte for byte, so that a coordinator sees that it is the same run.
std::string LeastOfTheAverage() {
  v1::RunConfig config = Least();
  config.mutable_aggregation()->set_rule("mean");
  return config.SerializeAsString();
}

TEST(WithLaterDefaults, CompletesAConfigurationOfAnOlderProgram) {
  const v1::RunConfig before = WrittenBefore();
  EXPECT_FALSE(ValidateRunConfig(before).ok());
  EXPECT_EQ(WithLaterDefaults(before).SerializeAsString(), LeastOfTheAverage());
  const auto run = ToCore(before);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->rounds.selection, Selection::kAll);
  EXPECT_EQ(run->rounds.cohort, 4);
  EXPECT_EQ(run->rounds.invited, 4);
  EXPECT_EQ(run->rounds.quorum, 2);
  EXPECT_EQ(run->rounds.weighting, Weighting::kUniform);
  EXPECT_EQ(run->clients.set_aside_after, 10);
  EXPECT_EQ(run->clients.set_aside_seconds, 600);
  EXPECT_EQ(run->limits.seconds, 0);
}

TEST(WithLaterDefaults, CompletesAConfigurationWithoutAController) {
  v1::RunConfig before = Least();
  before.clear_control();
  EXPECT_EQ(WithLaterDefaults(before).SerializeAsString(), LeastOfTheAverage());
  EXPECT_TRUE(ToCore(before).ok());
}

TEST(WithLaterDefaults, CompletesAConfigurationWithoutCounts) {
  v1::RunConfig before = Least();
  before.mutable_codec()->clear_counts();
  before.mutable_downstream()->clear_counts();
  EXPECT_EQ(WithLaterDefaults(before).SerializeAsString(), LeastOfTheAverage());
  EXPECT_EQ(ToCore(before)->codec.counts, "proportional");
}

// Every configuration has had codec.downstream, so the default of today is none of an older run's.
TEST(WithLaterDefaults, LeavesAnOlderRunItsForwardDownstream) {
  EXPECT_EQ(ToCore(Least())->downstream, DownstreamMode::kAuto);
  v1::RunConfig before = Least();
  before.mutable_codec()->set_downstream("forward");
  before.clear_clients();
  before.clear_server();
  before.clear_control();
  EXPECT_EQ(WithLaterDefaults(before).codec().downstream(), "forward");
  EXPECT_EQ(ToCore(before)->downstream, DownstreamMode::kForward);
}

TEST(WithLaterDefaults, CompletesAConfigurationWithoutLimitsOfItsStore) {
  v1::RunConfig before = Least();
  before.clear_ledger();
  before.clear_events();
  EXPECT_EQ(WithLaterDefaults(before).SerializeAsString(), Least().SerializeAsString());
  EXPECT_EQ(ToCore(Least())->ledger_keep_rounds, 1000);
  EXPECT_EQ(ToCore(Least())->events_keep, 1'000'000);
}

TEST(WithLaterDefaults, LeavesZerosThatWereGiven) {
  v1::RunConfig config = Least();
  config.mutable_clients()->set_set_aside_after(0);
  EXPECT_EQ(WithLaterDefaults(config).SerializeAsString(), config.SerializeAsString());
  EXPECT_EQ(ToCore(config)->clients.set_aside_after, 0);
  config.mutable_rounds()->set_selection("");
  EXPECT_FALSE(ToCore(config).ok());
}

// (clients, fraction, over_selection) to (cohort, invited): what the decimal numbers give, not their doubles.
TEST(ToCore, CohortsAreWholeNumbersOfClients) {
  const struct {
    int64_t clients;
    double fraction, over_selection;
    int64_t cohort, invited;
  } kCases[] = {
      {4, 1, 0, 4, 4},
      {30, 0.1, 0, 3, 3},
      {100, 0.07, 0, 7, 7},
      {100, 0.29, 0, 29, 29},
      {1000, 0.003, 0, 3, 3},
      {100000, 0.57, 0, 57000, 57000},
      {10, 0.11, 0, 2, 2},
      {100000, 1e-9, 0, 1, 1},
      {1, 1e-300, 0, 1, 1},
      {3, 0.3333333333, 0, 1, 1},
      {3, 0.33333333334, 0, 2, 2},
      {100, 0.1, 0.3, 10, 13},
      {100, 0.1, 0.31, 10, 14},
      {10, 0.5, 10, 5, 10},
      {1000, 0.1, 0.07, 100, 107},
  };
  for (const auto& c : kCases) {
    v1::RunConfig config = Least();
    config.mutable_rounds()->set_clients(c.clients);
    config.mutable_rounds()->set_selection("random");
    config.mutable_rounds()->set_fraction(c.fraction);
    config.mutable_rounds()->set_over_selection(c.over_selection);
    const auto run = ToCore(config);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->rounds.cohort, c.cohort) << c.fraction << " of " << c.clients;
    EXPECT_EQ(run->rounds.quorum, (c.cohort + 1) / 2) << c.fraction << " of " << c.clients;
    EXPECT_EQ(run->rounds.invited, c.invited) << c.over_selection << " over " << c.cohort;
  }
  // Every whole percentage and permille of a fleet that it divides.
  for (int64_t parts : {100, 1000}) {
    for (int64_t part = 1; part <= parts; ++part) {
      const double fraction = std::stod(absl::StrCat(part, parts == 100 ? "e-2" : "e-3"));
      EXPECT_EQ(CeilOf(fraction, 100 * parts), 100 * part);
      EXPECT_EQ(CeilOf(fraction, 100 * parts + 1), 100 * part + 1);
    }
  }
}

TEST(ToCore, KnowsEverySelection) {
  const std::pair<const char*, Selection> kSelections[] = {{"all", Selection::kAll},
                                                           {"random", Selection::kRandom},
                                                           {"samples", Selection::kSamples},
                                                           {"reliability", Selection::kReliability}};
  for (const auto& [name, selection] : kSelections) {
    v1::RunConfig config = Least();
    config.mutable_rounds()->set_selection(name);
    EXPECT_EQ(ToCore(config)->rounds.selection, selection) << name;
  }
}

TEST(ToCore, ConvertsEveryField) {
  v1::RunConfig config = Least();
  config.set_seed(5);
  config.set_durability("relaxed");
  config.mutable_codec()->set_downstream("auto");
  config.mutable_rounds()->set_evaluate_every(11);
  config.mutable_checkpoints()->set_every(12);
  config.mutable_checkpoints()->set_keep(13);
  config.mutable_ledger()->set_keep_rounds(21);
  config.mutable_events()->set_keep(22);
  config.mutable_rounds()->set_quorum(2);
  config.mutable_rounds()->set_grace_seconds(14);
  config.mutable_rounds()->set_weighting("samples");
  config.mutable_clients()->add_allow("a-*");
  config.mutable_clients()->add_allow("b");
  config.mutable_clients()->set_set_aside_after(15);
  config.mutable_clients()->set_set_aside_seconds(16);
  config.mutable_limits()->set_seconds(17);
  config.mutable_limits()->set_accuracy(0.5);
  config.mutable_limits()->set_loss(0.25);
  config.mutable_limits()->set_iterations(18);
  const auto run = ToCore(config);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->name, "r");
  EXPECT_EQ(run->seed, 5u);
  EXPECT_EQ(run->durability, Durability::kRelaxed);
  EXPECT_EQ(run->model.name, "lenet5_caffe");
  EXPECT_EQ(run->data.name, "mnist");
  EXPECT_EQ(run->data.partition, "iid");
  EXPECT_EQ(run->train.local_steps, 10);
  EXPECT_EQ(run->train.batch_size, 128);
  EXPECT_EQ(run->train.optimizer.name, "adam");
  EXPECT_EQ(run->train.optimizer.learning_rate, 0.5);
  EXPECT_EQ(run->train.optimizer.momentum, 0.9);
  EXPECT_EQ(run->train.optimizer.beta1, 0.9);
  EXPECT_EQ(run->train.optimizer.beta2, 0.999);
  EXPECT_EQ(run->train.optimizer.epsilon, 1e-8);
  EXPECT_TRUE(run->train.optimizer.momentum_masking);
  EXPECT_EQ(run->codec.name, "sbc");
  EXPECT_EQ(run->codec.density, 0.01);
  EXPECT_EQ(run->codec.counts, "proportional");
  EXPECT_EQ(run->codec.mean_precision, "fp32");
  EXPECT_EQ(run->downstream, DownstreamMode::kAuto);
  EXPECT_EQ(run->rounds.count, 3);
  EXPECT_EQ(run->rounds.clients, 4);
  EXPECT_EQ(run->rounds.quorum, 2);
  EXPECT_EQ(run->rounds.grace_seconds, 14);
  EXPECT_EQ(run->rounds.weighting, Weighting::kSamples);
  EXPECT_THAT(run->clients.allow, ElementsAre("a-*", "b"));
  EXPECT_EQ(run->clients.set_aside_after, 15);
  EXPECT_EQ(run->clients.set_aside_seconds, 16);
  EXPECT_EQ(run->limits.seconds, 17);
  EXPECT_EQ(run->limits.accuracy, 0.5);
  EXPECT_EQ(run->limits.loss, 0.25);
  EXPECT_EQ(run->limits.iterations, 18);
  EXPECT_EQ(run->rounds.deadline_seconds, 600);
  EXPECT_EQ(run->evaluate_every, 11);
  EXPECT_EQ(run->checkpoint_every, 12);
  EXPECT_EQ(run->checkpoint_keep, 13);
  EXPECT_EQ(run->ledger_keep_rounds, 21);
  EXPECT_EQ(run->events_keep, 22);
  config.mutable_rounds()->set_clients(0);
  EXPECT_FALSE(ToCore(config).ok());
}

std::vector<std::string> Allowed(const char* field) {
  const auto& names = v1::Codec::descriptor()->FindFieldByName(field)->options().GetExtension(v1::rule).one_of();
  return {names.begin(), names.end()};
}

// The schema names what the compression library has, and its defaults are the library's.
TEST(RunConfigSchema, KnowsEveryRowOfTheCompressionTables) {
  EXPECT_THAT(Allowed("name"), UnorderedElementsAreArray(CodecNames()));
  std::vector<std::string> positions = PositionCoderNames();
  positions.emplace_back(kSharedPositions);
  EXPECT_THAT(Allowed("positions"), UnorderedElementsAreArray(positions));
  std::vector<std::string> feedbacks = FeedbackNames();
  feedbacks.push_back("own");
  EXPECT_THAT(Allowed("feedback"), UnorderedElementsAreArray(feedbacks));
  const CodecSpec defaults;
  const CodecSpec codec = ToCore(Least())->codec;
  EXPECT_EQ(codec.positions, defaults.positions);
  EXPECT_EQ(codec.grouping, defaults.grouping);
  EXPECT_EQ(codec.merge_below, defaults.merge_below);
  EXPECT_EQ(codec.bits, defaults.bits);
  EXPECT_EQ(codec.code, defaults.code);
  EXPECT_EQ(codec.bucket, defaults.bucket);
  EXPECT_EQ(codec.threshold, defaults.threshold);
  EXPECT_EQ(codec.samples, defaults.samples);
  EXPECT_EQ(codec.sampling_step, defaults.sampling_step);
  EXPECT_EQ(codec.feedback, defaults.feedback);
  EXPECT_EQ(codec.decay, defaults.decay);
  EXPECT_EQ(codec.momentum, defaults.momentum);
  EXPECT_EQ(codec.clip, defaults.clip);
  EXPECT_EQ(codec.warmup_rounds, defaults.warmup_rounds);
}

// Every setting of the file arrives: none keeps its default.
TEST(RunConfigSchema, CarriesEverySettingOfTheCodec) {
  const auto config = ParseRunConfig(
      absl::StrReplaceAll(kLeast, {{"name = 'sbc'\n",
                                    "name = 'dgc'\npositions = 'golomb'\ngrouping = 'merge_small'\nmerge_below = 7\n"
                                    "bits = 5\ncode = 'elias'\nbucket = 9\nthreshold = 0.5\nsamples = 0.25\n"
                                    "sampling_step = 0.125\nfeedback = 'none'\ndecay = 0.75\nmomentum = 0.5\n"
                                    "clip = 2.5\nwarmup_rounds = 11\n"}}),
      "x.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  const CodecSpec codec = ToCore(*config)->codec;
  EXPECT_EQ(codec.name, "dgc");
  EXPECT_EQ(codec.positions, "golomb");
  EXPECT_EQ(codec.grouping, "merge_small");
  EXPECT_EQ(codec.merge_below, 7);
  EXPECT_EQ(codec.bits, 5);
  EXPECT_EQ(codec.code, "elias");
  EXPECT_EQ(codec.bucket, 9);
  EXPECT_EQ(codec.threshold, 0.5);
  EXPECT_EQ(codec.samples, 0.25);
  EXPECT_EQ(codec.sampling_step, 0.125);
  EXPECT_EQ(codec.feedback, "none");
  EXPECT_EQ(codec.decay, 0.75);
  EXPECT_EQ(codec.momentum, 0.5);
  EXPECT_EQ(codec.clip, 2.5);
  EXPECT_EQ(codec.warmup_rounds, 11);
}

TEST(RunConfigSchema, CarriesEverySettingOfTheServer) {
  const auto config = ParseRunConfig(
      absl::StrCat(absl::StrReplaceAll(kLeast, {{"name = 'sbc'\n", "name = 'sbc'\ndownstream = 'qsgd'\n"}}),
                   "[downstream]\ndensity = 0.5\ncounts = 'equal'\nmean_precision = 'bf16'\npositions = "
                   "'golomb'\ngrouping = 'global'\n"
                   "merge_below = 7\nbits = 5\ncode = 'elias'\nbucket = 9\nthreshold = 0.25\nsamples = 0.125\n"
                   "feedback = 'none'\ndecay = 0.75\n"
                   "[server]\noptimizer = 'sgd'\nlearning_rate = 0.7\nmomentum = 0.8\nnesterov = true\nbeta1 = 0.6\n"
                   "beta2 = 0.4\ntau = 0.3\n"),
      "x.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  const RunConfig run = *ToCore(*config);
  EXPECT_EQ(run.codec.name, "sbc");
  EXPECT_EQ(run.downstream, DownstreamMode::kCoded);
  EXPECT_EQ(run.downstream_codec.name, "qsgd");
  EXPECT_EQ(run.downstream_codec.density, 0.5);
  EXPECT_EQ(run.downstream_codec.counts, "equal");
  EXPECT_EQ(run.downstream_codec.mean_precision, "bf16");
  EXPECT_EQ(run.downstream_codec.positions, "golomb");
  EXPECT_EQ(run.downstream_codec.grouping, "global");
  EXPECT_EQ(run.downstream_codec.merge_below, 7);
  EXPECT_EQ(run.downstream_codec.bits, 5);
  EXPECT_EQ(run.downstream_codec.code, "elias");
  EXPECT_EQ(run.downstream_codec.bucket, 9);
  EXPECT_EQ(run.downstream_codec.threshold, 0.25);
  EXPECT_EQ(run.downstream_codec.samples, 0.125);
  EXPECT_EQ(run.downstream_codec.feedback, "none");
  EXPECT_EQ(run.downstream_codec.decay, 0.75);
  EXPECT_EQ(run.server.name, "sgd");
  EXPECT_EQ(run.server.learning_rate, 0.7);
  EXPECT_EQ(run.server.momentum, 0.8);
  EXPECT_TRUE(run.server.nesterov);
  EXPECT_EQ(run.server.beta1, 0.6);
  EXPECT_EQ(run.server.beta2, 0.4);
  EXPECT_EQ(run.server.tau, 0.3);
}

// Codecs that depend on a client's own past, or that are modes by themselves, are no codecs of the server.
TEST(RunConfigSchema, EveryOtherCodecCanGoDown) {
  std::vector<std::string> names = {"forward", "auto"};
  for (const std::string& name : CodecNames()) {
    if (name != "dgc" && name != "adacomp" && name != "signum") names.push_back(name);
  }
  EXPECT_THAT(Allowed("downstream"), UnorderedElementsAreArray(names));
  const CodecSpec defaults;
  v1::RunConfig config = Least();
  config.mutable_codec()->set_downstream("stc");
  const CodecSpec codec = ToCore(config)->downstream_codec;
  EXPECT_EQ(codec.density, defaults.density);
  EXPECT_EQ(codec.merge_below, defaults.merge_below);
  EXPECT_EQ(codec.bits, defaults.bits);
  EXPECT_EQ(codec.threshold, defaults.threshold);
  EXPECT_EQ(codec.samples, defaults.samples);
  EXPECT_EQ(codec.feedback, "own");
}

TEST(RunConfigSchema, ForwardHasNoPlaceForAServerOptimizer) {
  EXPECT_THAT(ErrorOf("name = 'sbc'\n", "name = 'sbc'\ndownstream = 'forward'\n[server]\noptimizer = 'adam'\n"),
              HasSubstr("server.optimizer = 'adam' makes more of a round than the average"));
  EXPECT_THAT(ErrorOf("name = 'sbc'\n", "name = 'sbc'\ndownstream = 'auto'\n[server]\nnesterov = true\n"),
              HasSubstr("server.nesterov is for optimizer = 'sgd'"));
}

}  // namespace
}  // namespace terse
