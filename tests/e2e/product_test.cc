// The product as its users get it: the programs train LeNet5 on the embedded digits, and everything that they
// report about it agrees.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/fleet_processes.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

constexpr int kClients = 2;
constexpr int kRounds = 6;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string RunFile() {
  return absl::StrCat(
      "name = 'product'\n[train]\nlocal_steps = 2\nbatch_size = 32\noptimizer.learning_rate = 0.001\n"
      "[codec]\nname = 'sbc'\ndensity = 0.01\n[rounds]\ncount = ",
      kRounds, "\nclients = ", kClients, "\nevaluate_every = 3\n[checkpoints]\nevery = 2\n");
}

// The rows of a CSV file by column name.
std::vector<std::map<std::string, std::string>> ParseCsv(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  std::vector<std::map<std::string, std::string>> rows;
  const std::vector<std::string> names = absl::StrSplit(lines.at(0), ',');
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = absl::StrSplit(lines[i], ',');
    EXPECT_EQ(cells.size(), names.size()) << lines[i];
    auto& row = rows.emplace_back();
    for (size_t c = 0; c < names.size(); ++c) row[names[c]] = cells.at(c);
  }
  return rows;
}

int64_t Number(const std::string& text) {
  int64_t number = -1;
  EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << text;
  return number;
}

// A 64-bit number of the JSON form of a protocol buffer, which writes it as a string.
int64_t Number(const nlohmann::json& value) {
  return value.is_string() ? Number(value.get<std::string>()) : value.get<int64_t>();
}

// The lines of a log, each of which must be an object with what every line has.
std::vector<nlohmann::json> ParseLog(const std::string& text, const std::set<std::string>& components) {
  std::vector<nlohmann::json> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    nlohmann::json json = nlohmann::json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) {
      ADD_FAILURE() << "no JSON: " << line;
      continue;
    }
    EXPECT_TRUE(json.contains("time") && json.contains("level") && json.contains("message")) << line;
    EXPECT_TRUE(components.count(json.value("component", "")) == 1) << line;
    lines.push_back(std::move(json));
  }
  return lines;
}

// The rounds of the lines of `component` whose message has this `text`, in order; -1 for one that names none. All must
// name the run.
std::vector<int64_t> RoundsOf(const std::vector<nlohmann::json>& lines, const std::string& component,
                              const std::string& text) {
  std::vector<int64_t> rounds;
  for (const nlohmann::json& line : lines) {
    if (line.at("component") != component || !absl::StrContains(line.at("message").get<std::string>(), text)) continue;
    EXPECT_EQ(line.value("run", ""), "product") << line;
    rounds.push_back(line.value("round", int64_t{-1}));
  }
  return rounds;
}

// One fleet for all tests of this file: it trains once.
class Product : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("OMP_NUM_THREADS", "1", 1);
    fleet_ = new FleetProcesses(Program("terse-coordinator"), Program("terse-client"),
                                {"--log-format", "json", "--log-level", "debug"});
    run_file_ = fleet_->directory() / "run.toml";
    WriteText(run_file_, RunFile());
    fleet_->StartCoordinator(run_file_);
    for (int i = 0; i < kClients; ++i) fleet_->StartClient(i);
    for (int i = 0; i < kClients; ++i) {
      ASSERT_EQ(fleet_->client(i).Wait(absl::Minutes(3)), absl::optional<int>(0)) << fleet_->client(i).Output();
    }
    // Ends when the last evaluation is in.
    int code = -1;
    const std::string watched = Ctl({"watch"}, &code);
    ASSERT_EQ(code, 0) << watched;
    export_dir_ = fleet_->directory() / "export";
    const std::string exported = Ctl({"export", "--out", export_dir_}, &code);
    ASSERT_EQ(code, 0) << exported;
  }
  static void TearDownTestSuite() {
    delete fleet_;
    fleet_ = nullptr;
  }

  static std::string Ctl(std::vector<std::string> arguments, int* code = nullptr) {
    return fleet_->Ctl(std::move(arguments), code);
  }
  static int64_t Query(const std::string& sql) { return QueryNumber(fleet_->database(), sql); }

  static FleetProcesses* fleet_;
  static std::string run_file_;
  static std::string export_dir_;
};

FleetProcesses* Product::fleet_ = nullptr;
std::string Product::run_file_;
std::string Product::export_dir_;

TEST_F(Product, CliCsvAndDatabaseAgreeToTheByte) {
  const nlohmann::json json = nlohmann::json::parse(Ctl({"rounds", "--json"}));
  const nlohmann::json& rounds = json.is_array() ? json : json.at("rounds");
  const auto csv = ParseCsv(ReadText(export_dir_ + "/rounds.csv"));
  const nlohmann::json ledger = nlohmann::json::parse(Ctl({"ledger", "--json"}));
  ASSERT_EQ(rounds.size(), kRounds);
  ASSERT_EQ(csv.size(), kRounds);
  EXPECT_EQ(Query("SELECT count(*) FROM rounds"), kRounds);
  for (int i = 0; i < kRounds; ++i) {
    const int64_t id = Number(csv[i].at("id"));
    for (const std::string kind : {"dense", "payload", "wire"}) {
      for (const std::string direction : {"up", "down"}) {
        const std::string column = absl::StrCat(kind, "_bytes_", direction);
        int64_t stored = 0;
        for (const nlohmann::json& row : ledger) {
          if (row.at("round") == id && row.at("direction") == direction) stored += Number(row.at(kind + "_bytes"));
        }
        EXPECT_GE(stored, direction == "up" ? 1 : 0) << column;
        EXPECT_EQ(Number(csv[i].at(column)), stored) << "round " << id << " " << column;
        EXPECT_EQ(Number(rounds[i].at(column)), stored) << "round " << id << " " << column;
      }
    }
    for (const std::string column : {"opened_us", "closed_us", "train_us_max", "updates", "base_version"}) {
      const int64_t stored = Query(absl::StrCat("SELECT ", column, " FROM rounds WHERE id = ", id));
      EXPECT_EQ(Number(csv[i].at(column)), stored) << column;
      EXPECT_EQ(Number(rounds[i].at(column)), stored) << column;
    }
    EXPECT_EQ(csv[i].at("accuracy").empty(), id % 3 != 0) << "evaluated every third round";
  }
}

TEST_F(Product, SummaryAndClientsAgreeWithTheLedger) {
  const nlohmann::json summary = nlohmann::json::parse(ReadText(export_dir_ + "/summary.json"));
  for (const char* key : {"accuracy", "loss", "rounds", "clients", "iterations", "parameters", "dense_bytes_up",
                          "wire_bytes_up", "payload_bytes_up", "wire_bytes_down", "compression_up_wire",
                          "compression_up_payload", "round_overhead_ms_p50", "seconds"}) {
    EXPECT_TRUE(summary.contains(key)) << key;
  }
  const int64_t wire = Query("SELECT sum(wire_up) FROM round_totals");
  const int64_t payload = Query("SELECT sum(payload_bytes) FROM updates");
  EXPECT_EQ(summary.at("wire_bytes_up"), wire);
  EXPECT_EQ(summary.at("payload_bytes_up"), payload) << "every update of this run was chosen";
  EXPECT_EQ(summary.at("iterations"), kRounds * 2);
  const double dense = 4.0 * 431080 * kRounds * 2 * kClients;
  EXPECT_EQ(summary.at("dense_bytes_up").get<double>(), dense);
  EXPECT_DOUBLE_EQ(summary.at("compression_up_wire").get<double>(), dense / wire);

  const nlohmann::json json = nlohmann::json::parse(Ctl({"clients", "--json"}));
  const nlohmann::json& clients = json.is_array() ? json : json.at("clients");
  ASSERT_EQ(clients.size(), kClients);
  int64_t sum = 0;
  for (const nlohmann::json& client : clients) sum += Number(client.at("wire_bytes_up"));
  EXPECT_EQ(sum, wire);

  const nlohmann::json run = nlohmann::json::parse(Ctl({"runs", "--json"})).at(0);
  for (const char* kind : {"dense", "payload", "wire"}) {
    for (const char* direction : {"up", "down"}) {
      const std::string key = absl::StrCat(kind, "_bytes_", direction);
      EXPECT_EQ(run.at(key), summary.at(key)) << key;
    }
  }
  EXPECT_EQ(run.at("accuracy"), summary.at("accuracy"));
  EXPECT_EQ(run.at("test_loss"), summary.at("loss"));
  EXPECT_EQ(run.at("version"), kRounds);
  const auto span_us = run.at("last_committed_us").get<int64_t>() - run.at("first_opened_us").get<int64_t>();
  EXPECT_NEAR(summary.at("seconds").get<double>(), 1e-6 * static_cast<double>(span_us), 1e-5);
  // The folder that was exported is the run itself.
  int code = -1;
  const nlohmann::json both =
      nlohmann::json::parse(Ctl({"run", "compare", run.at("name").get<std::string>(), export_dir_, "--json"}, &code));
  EXPECT_EQ(code, 0);
  EXPECT_EQ(both.at("settings").size(), 0);
  EXPECT_EQ(both.at("runs").at(0).at("best_accuracy"), run.at("best_accuracy"));
  for (const nlohmann::json& target : both.at("accuracies"))
    EXPECT_EQ(target.at("runs").at(0), target.at("runs").at(1));
}

// The coordinator reads its own sockets; the clients read theirs.
TEST_F(Product, ClientsCountTheSameWireBytes) {
  int64_t sent = 0;
  for (int i = 0; i < kClients; ++i) {
    const std::string log = fleet_->client(i).Output();
    const size_t at = log.find("connection closed: ");
    ASSERT_NE(at, std::string::npos) << log;
    sent += std::atoll(log.c_str() + at + 19);
  }
  // The two look at a closing connection at different moments, so its last HTTP/2 frames may be in one count only. Any
  // real difference is larger: one window update a round would be 26 bytes x 6 rounds a client.
  constexpr double kClosingFrames = 64;
  const int64_t booked = Query("SELECT sum(wire_up) FROM round_totals");
  EXPECT_NEAR(static_cast<double>(sent), static_cast<double>(booked), kClients * kClosingFrames);
}

TEST_F(Product, EveryLineOfTheCoordinatorsLogSaysWhatItIsAbout) {
  const std::vector<nlohmann::json> log =
      ParseLog(fleet_->coordinator().Output(), {"server", "run", "session", "tls", "web"});
  for (const std::string event : {"round opened", "round closed", "round committed"}) {
    EXPECT_THAT(RoundsOf(log, "run", event), ElementsAre(1, 2, 3, 4, 5, 6)) << event;
  }
  EXPECT_THAT(RoundsOf(log, "run", "round evaluated"), ElementsAre(3, 6));
  std::vector<int64_t> twice;
  for (int64_t round = 1; round <= kRounds; ++round) twice.insert(twice.end(), kClients, round);
  for (const std::string event : {"is to train", "sent an update", "verdict on its update: applied"}) {
    EXPECT_THAT(RoundsOf(log, "session", event), UnorderedElementsAreArray(twice)) << event;
  }
  EXPECT_THAT(RoundsOf(log, "run", "client_joined"), SizeIs(kClients));
  for (const nlohmann::json& line : log) {
    const std::string component = line.at("component"), message = line.at("message");
    if (component == "session" || absl::StartsWith(message, "client_")) {
      EXPECT_THAT(line.value("client", ""), AnyOf("client-0", "client-1")) << line;
    } else {
      EXPECT_FALSE(line.contains("client")) << line;
    }
  }
}

TEST_F(Product, EveryLineOfAClientsLogSaysWhatItIsAbout) {
  for (int i = 0; i < kClients; ++i) {
    const std::vector<nlohmann::json> log =
        ParseLog(fleet_->client(i).Output(), {"daemon", "session", "link", "enrol"});
    for (const nlohmann::json& line : log) EXPECT_EQ(line.value("client", ""), absl::StrCat("client-", i)) << line;
    for (const std::string event : {"trained 2 steps", "sent the update", "the update was applied"}) {
      EXPECT_THAT(RoundsOf(log, "session", event), ElementsAre(1, 2, 3, 4, 5, 6)) << event;
    }
    EXPECT_THAT(RoundsOf(log, "session", "the run is over"), SizeIs(1));
    EXPECT_THAT(RoundsOf(log, "link", "connection closed"), SizeIs(1));
  }
}

TEST_F(Product, ACardThatIsNotThereIsSaidWithoutACoordinator) {
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is a card";
  Process client({Program("terse-client"), "--coordinator", "127.0.0.1:1", "--name", "a", "--state",
                  fleet_->directory() / "unused", "--device", "cuda"},
                 fleet_->directory() / "no-card.log");
  EXPECT_EQ(client.Wait(absl::Seconds(30)), absl::optional<int>(1)) << client.Output();
  EXPECT_THAT(client.Output(), HasSubstr("this LibTorch sees no CUDA device"));
}

TEST_F(Product, UnknownComponentOfTheLogIsAUsageError) {
  const std::string state = fleet_->directory() / "unused";
  int code = -1;
  const std::string coordinator =
      RunCommand({Program("terse-coordinator"), "--state", state, "--log-level", "link=debug"}, &code);
  EXPECT_EQ(code, 2);
  EXPECT_THAT(coordinator, HasSubstr("the components are server, run, session, tls, web"));
  const std::string client = RunCommand({Program("terse-client"), "--coordinator", "127.0.0.1:1", "--name", "a",
                                         "--state", state, "--log-level", "tls=debug"},
                                        &code);
  EXPECT_EQ(code, 2);
  EXPECT_THAT(client, HasSubstr("the components are daemon, session, link, enrol"));
}

TEST_F(Product, PythonOpensTheExportedModel) {
  int code = -1;
  const std::string output =
      RunCommand({"/usr/bin/python3", InSource("tests/learning/open_export.py"), export_dir_ + "/model.pt"}, &code);
  EXPECT_EQ(code, 0) << output;
}

TEST_F(Product, StatusSpeaksOfAFinishedRun) {
  EXPECT_THAT(Ctl({"status"}), HasSubstr("finished"));
  EXPECT_THAT(ReadText(export_dir_ + "/accuracy_vs_bytes.svg"), HasSubstr("<svg"));
}

TEST_F(Product, BusyPortIsOneClearLine) {
  int code = -1;
  const std::string output =
      RunCommand({Program("terse-coordinator"), "--run-file", run_file_, "--state", fleet_->directory() / "second",
                  "--listen", fleet_->addresses().listen, "--admin", "127.0.0.1:0"},
                 &code);
  EXPECT_EQ(code, 1);
  EXPECT_THAT(output, HasSubstr("the port is in use"));
  EXPECT_THAT(output, HasSubstr("--listen"));
}

TEST_F(Product, SecondCoordinatorOnOneDirectoryIsRefused) {
  int code = -1;
  const std::string output =
      RunCommand({Program("terse-coordinator"), "--run-file", run_file_, "--state", fleet_->coordinator_state(),
                  "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"},
                 &code);
  EXPECT_EQ(code, 1);
  EXPECT_THAT(output, HasSubstr(fleet_->coordinator_state()));
}

// A run that its iterations end, under a controller: the last round, whose number nobody knew before, is watched with
// its evaluation.
TEST(ProductUnderControl, WatchTellsProgressInIterationsAndTheLastEvaluation) {
  FleetProcesses fleet(Program("terse-coordinator"), Program("terse-client"));
  const std::string run_file = fleet.directory() / "run.toml";
  WriteText(
      run_file,
      "name = 'joint'\n[train]\nlocal_steps = 1\nbatch_size = 32\noptimizer.learning_rate = 0.001\n"
      "[codec]\nname = 'sbc'\n[control]\nname = 'joint'\nbudget = 20_000\nlocal_steps = [3, 1]\n"
      "density = [0.001, 0.01]\n[limits]\niterations = 8\n[rounds]\ncount = 8\nclients = 1\nevaluate_every = 1000\n");
  fleet.StartCoordinator(run_file);
  std::string watched;
  int code = -1;
  std::thread watch([&] { watched = fleet.Ctl({"watch"}, &code); });
  fleet.StartClient(0);
  EXPECT_EQ(fleet.client(0).Wait(absl::Minutes(3)), absl::optional<int>(0)) << fleet.client(0).Output();
  watch.join();
  EXPECT_EQ(code, 0);
  const std::vector<std::string> lines = absl::StrSplit(watched, '\n', absl::SkipEmpty());
  ASSERT_GE(lines.size(), 3u) << watched;
  EXPECT_THAT(lines.front(), HasSubstr("iteration"));
  EXPECT_EQ(lines.back(), "run joint ended after 4 rounds, 8 of 8 iterations");
  const std::vector<std::string> last = absl::StrSplit(lines[lines.size() - 2], ' ', absl::SkipEmpty());
  EXPECT_EQ(last.at(0), "8/8");
  double accuracy = -1;
  EXPECT_TRUE(absl::SimpleAtod(last.at(1), &accuracy)) << watched;
  EXPECT_LE(accuracy, 1) << "the training loss stands where the accuracy belongs: " << watched;
  EXPECT_THAT(fleet.Ctl({"rounds", "--why"}), AllOf(HasSubstr("phase 1 of 2: 3 steps"), HasSubstr("phase 2 of 2")));
  EXPECT_THAT(fleet.Ctl({"status"}), HasSubstr("8 of 8"));
}

// The result of a fleet of one client.
struct Ending {
  std::string model_hash;
  int64_t payload_bytes_up = 0;
  int64_t misread = 0;
};

Ending Train(const std::string& positions) {
  FleetProcesses fleet(Program("terse-coordinator"), Program("terse-client"));
  const std::string run_file = fleet.directory() / "run.toml";
  WriteText(run_file, absl::StrCat("name = 'positions'\n[train]\nlocal_steps = 2\nbatch_size = 32\n",
                                   "optimizer.learning_rate = 0.001\n[codec]\nname = 'sbc'\npositions = '", positions,
                                   "'\n[rounds]\ncount = ", kRounds, "\nclients = 1\nevaluate_every = 1000\n"));
  fleet.StartCoordinator(run_file);
  fleet.StartClient(0);
  EXPECT_EQ(fleet.client(0).Wait(absl::Minutes(3)), absl::optional<int>(0)) << fleet.client(0).Output();
  const auto query = [&](const std::string& sql) { return QueryNumber(fleet.database(), sql); };
  EXPECT_EQ(query("SELECT count(*) FROM rounds WHERE state = 'committed'"), kRounds);
  return {nlohmann::json::parse(fleet.Ctl({"status", "--json"})).at("model_hash"),
          query("SELECT sum(payload_up) FROM round_totals"),
          query("SELECT count(*) FROM events WHERE kind = 'update_misread'")};
}

// Packing changes what travels and nothing else.
TEST(ProductWithSharedPositions, EndsWithTheSameModelForFewerBytes) {
  const Ending rice = Train("rice"), shared = Train("shared");
  EXPECT_EQ(shared.model_hash, rice.model_hash);
  EXPECT_LT(shared.payload_bytes_up, 0.97 * rice.payload_bytes_up);
  EXPECT_EQ(shared.misread, 0);
}

}  // namespace
}  // namespace terse
