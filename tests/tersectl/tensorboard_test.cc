// TensorBoard's event files, against bytes and a reader that have nothing of Terse in them.
#include "tersectl/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/paths.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using nlohmann::json;

constexpr int64_t kBegun = 1'700'000'000'250'000;

v1::Round RoundAt(uint64_t id, const std::string& state) {
  v1::Round round;
  round.set_id(id);
  round.set_state(state);
  round.set_opened_us(kBegun + 9'750'000);
  round.set_committed_us(state == "committed" ? kBegun + 11'250'000 : 0);
  round.set_train_loss(2);
  round.set_dense_bytes_up(state == "committed" ? 400000 : 0);
  round.set_payload_bytes_up(state == "committed" ? 1000 : 500);
  round.set_wire_bytes_up(state == "committed" ? 1600 : 800);
  round.set_dense_bytes_down(state == "committed" ? 80000 : 0);
  round.set_payload_bytes_down(state == "committed" ? 3000 : 0);
  round.set_wire_bytes_down(state == "committed" ? 3200 : 0);
  return round;
}

// Two committed rounds with an aborted one between them, and an open one.
std::vector<v1::Round> Rounds() {
  std::vector<v1::Round> rounds = {RoundAt(1, "committed"), RoundAt(2, "aborted"), RoundAt(300, "committed"),
                                   RoundAt(301, "open")};
  rounds[0].set_accuracy(0.5);
  rounds[0].set_test_loss(1.25);
  rounds[0].set_top5(0.875);
  rounds[0].set_perplexity(3.5);
  rounds[2].set_opened_us(kBegun + 29'750'000);
  rounds[2].set_committed_us(kBegun + 30'750'000);
  rounds[2].set_train_loss(0.75);
  return rounds;
}

v1::Status StatusOfRun() {
  v1::Status status;
  status.set_created_us(kBegun);
  return status;
}

TEST(TensorBoardTest, IsTheGoldenFile) {
  EXPECT_EQ(TensorBoardEvents(StatusOfRun(), Rounds()), Slurp(InSource("tests/golden/tensorboard_events.bin")));
}

TEST(TensorBoardTest, AReaderWithChecksumsOfItsOwnFindsTheScalars) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/events";
  std::vector<v1::Round> rounds;
  for (uint64_t id = 1; id <= 100; ++id) rounds.push_back(RoundAt(id, "committed"));
  rounds[41].set_accuracy(0.25);
  std::ofstream(path, std::ios::binary) << TensorBoardEvents(StatusOfRun(), rounds);
  FILE* const pipe =
      popen(absl::StrCat("python3 ", InSource("tests/golden/tensorboard_events.py"), " read ", path).c_str(), "r");
  std::string output;
  char buffer[4096];
  for (size_t count; (count = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) output.append(buffer, count);
  ASSERT_EQ(pclose(pipe), 0);
  std::vector<json> events;
  for (const auto line : absl::StrSplit(output, '\n', absl::SkipEmpty())) {
    events.push_back(json::parse(line.begin(), line.end()));
  }
  ASSERT_EQ(events.size(), 101u);
  EXPECT_EQ(events[0]["version"], "brain.Event:2");
  EXPECT_EQ(events[42]["step"], 42);
  EXPECT_EQ(events[42]["scalars"]["test/accuracy"], 0.25);
  EXPECT_EQ(events[43]["scalars"].count("test/accuracy"), 0u);
  EXPECT_EQ(events[100]["scalars"]["bytes_total/up_wire"], 160000);
  EXPECT_EQ(events[100]["time"], 1700000011.5);
}

TEST(TensorBoardTest, MetricsByNameAreScalars) {
  v1::Round round = RoundAt(1, "committed");
  for (const char* kind : {"training", "evaluation", "test"}) {
    v1::MetricMean* const metric = round.add_metrics();
    metric->set_kind(kind);
    metric->set_name("f1");
    metric->set_mean(0.5);
  }
  const std::string file = TensorBoardEvents(StatusOfRun(), {round});
  for (const char* tag : {"train/f1", "evaluation/f1", "test/f1"}) EXPECT_NE(file.find(tag), std::string::npos) << tag;
}

TEST(TensorBoardTest, BeforeAnythingWasSentThereIsNoCompression) {
  v1::Round round = RoundAt(1, "committed");
  round.set_payload_bytes_up(0);
  round.set_wire_bytes_up(0);
  const std::string file = TensorBoardEvents(StatusOfRun(), {round});
  EXPECT_EQ(file.find("compression/up"), std::string::npos);
  EXPECT_NE(file.find("compression/both_wire"), std::string::npos) << "the way down";
  EXPECT_NE(file.find("train/loss"), std::string::npos);
}

}  // namespace
}  // namespace terse
