// A fleet in one process on the rendered digits: what it trains with, and which runs it refuses.
#include "bench/in_process_fleet.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compression/codec_table.h"
#include "learning/blueprint.h"
#include "learning/local_trainer.h"
#include "learning/runtime.h"

namespace terse {
namespace {

constexpr int64_t kSteps = 2;

RunConfig DigitsRun() {
  RunConfig run;
  run.seed = 1;
  run.model.name = "lenet5_caffe";
  run.data = {"mnist", "iid"};
  run.train.local_steps = kSteps;
  run.train.batch_size = 8;
  run.train.optimizer = {"sgd", 0.05, 0.9};
  run.codec.positions = "rice";
  run.rounds.clients = 2;
  return run;
}

// Messages of two rounds, in the order of their coming.
std::vector<std::string> MessagesOf(const RunConfig& run) {
  ConfigureThreads(1);
  const auto fleet = InProcessFleet::Create(run, "", "cpu");
  EXPECT_TRUE(fleet.ok()) << fleet.status();
  std::vector<std::string> messages;
  for (int round = 0; fleet.ok() && round < 2; ++round) {
    const absl::Status status = (*fleet)->Round([&](int64_t client, const Feedback& feedback, const std::string& sent) {
      EXPECT_EQ(client, static_cast<int64_t>(messages.size()) % 2);
      EXPECT_EQ(feedback.pending_message(), sent);
      messages.push_back(sent);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(messages.size(), 4u);
  messages.resize(4);
  return messages;
}

TEST(InProcessFleet, TheSameRunGivesTheSameMessages) {
  const std::vector<std::string> messages = MessagesOf(DigitsRun());
  EXPECT_EQ(messages, MessagesOf(DigitsRun()));
  EXPECT_NE(messages[0], messages[1]) << "clients have data of their own";
  EXPECT_NE(messages[0], messages[2]);
}

TEST(InProcessFleet, TheNumberOfWorkersChangesNothing) {
  std::vector<float> weights[2];
  for (const int workers : {1, 3}) {
    ConfigureThreads(1);
    const auto fleet = InProcessFleet::Create(DigitsRun(), "", "cpu", workers);
    ASSERT_TRUE(fleet.ok()) << fleet.status();
    for (int round = 0; round < 2; ++round) ASSERT_TRUE((*fleet)->Round({}).ok());
    weights[workers == 1 ? 0 : 1] = (*fleet)->weights();
  }
  EXPECT_EQ(weights[0], weights[1]);
}

// SBC Algorithm 1 for two clients, written out.
TEST(InProcessFleet, TheModelTakesTheAverageAndResidualsKeepTheRest) {
  const RunConfig run = DigitsRun();
  const auto blueprint = *MakeBlueprint(run.model);
  const auto codec = *MakeCodec(run.codec, blueprint->layout());
  const auto make_trainer = MakeTrainerFactory("", "cpu").value();
  std::vector<float> weights = blueprint->StartWeights(run.seed);
  std::vector<float> residuals[2] = {std::vector<float>(weights.size()), std::vector<float>(weights.size())};
  const std::unique_ptr<LocalTrainer> trainers[2] = {*make_trainer(run, Shard{0, 2}, ""),
                                                     *make_trainer(run, Shard{1, 2}, "")};
  ConfigureThreads(1);
  std::vector<std::string> expected;
  for (int64_t round = 0; round < 2; ++round) {
    std::vector<float> sum(weights.size());
    for (int client = 0; client < 2; ++client) {
      std::vector<float>& residual = residuals[client];
      std::vector<float> delta(weights.size());
      ASSERT_TRUE(trainers[client]->Train(weights, {kSteps, round * kSteps}, nullptr, absl::MakeSpan(delta)).ok());
      for (size_t i = 0; i < delta.size(); ++i) residual[i] += delta[i];
      expected.push_back(*codec->Encode(residual));
      ASSERT_TRUE(codec->AddDecoded(expected.back(), -1, absl::MakeSpan(residual)).ok());
      ASSERT_TRUE(codec->AddDecoded(expected.back(), 1, absl::MakeSpan(sum)).ok());
    }
    for (size_t i = 0; i < weights.size(); ++i) weights[i] += sum[i] * 0.5F;
  }
  EXPECT_EQ(MessagesOf(run), expected);
}

TEST(InProcessFleet, TheScheduleCountsIterationsFromZero) {
  RunConfig run = DigitsRun();
  run.train.schedule.factor = 0.01;
  run.train.schedule.at = {kSteps};  // the first step of the second round
  const std::vector<std::string> constant = MessagesOf(DigitsRun()), falling = MessagesOf(run);
  EXPECT_EQ(constant[0], falling[0]);
  EXPECT_EQ(constant[1], falling[1]);
  EXPECT_NE(constant[2], falling[2]);
  run.train.schedule.at = {kSteps + 1};
  EXPECT_NE(MessagesOf(run)[2], falling[2]);
}

TEST(InProcessFleet, MasksMomentumWhereItWasSent) {
  RunConfig run = DigitsRun();
  run.train.optimizer.momentum_masking = true;
  const std::vector<std::string> plain = MessagesOf(DigitsRun()), masked = MessagesOf(run);
  EXPECT_EQ(plain[0], masked[0]);
  EXPECT_NE(plain[2], masked[2]);
}

// Three clients of which one trains something else in the first so many of two rounds.
std::unique_ptr<InProcessFleet> WithHostile(const RunConfig& run, float factor, int hostile_rounds = 2) {
  ConfigureThreads(1);
  auto fleet = InProcessFleet::Create(run, "", "cpu");
  EXPECT_TRUE(fleet.ok()) << fleet.status();
  for (int round = 0; round < 2; ++round) {
    const absl::Status status = (*fleet)->Round({}, [&](absl::Span<const absl::Span<float>> deltas) {
      EXPECT_EQ(deltas.size(), 3u);
      if (round >= hostile_rounds) return;
      for (float& value : deltas[1]) value *= factor;
    });
    EXPECT_TRUE(status.ok()) << status;
  }
  return *std::move(fleet);
}

TEST(InProcessFleet, ARuleTakesThePlaceOfTheAverage) {
  RunConfig run = DigitsRun();
  run.rounds.clients = 3;
  run.policy.norm_ratio = 0;
  run.codec.name = "dense";
  const auto mean = WithHostile(run, -1000)->weights();
  run.aggregation.rule = "median";
  const auto median = WithHostile(run, -1000)->weights();
  double of_mean = 0, of_median = 0;
  for (size_t i = 0; i < mean.size(); ++i) {
    of_mean = std::max<double>(of_mean, std::abs(mean[i]));
    of_median = std::max<double>(of_median, std::abs(median[i]));
  }
  EXPECT_GT(of_mean, 10);
  EXPECT_LT(of_median, 1);
}

TEST(InProcessFleet, ARefusedUpdateIsLeftOutAndItsClientStartsAfresh) {
  RunConfig run = DigitsRun();
  run.rounds.clients = 3;
  run.policy.norm_ratio = 0;
  run.policy.z_score = 50;  // honest norms differ, by some deviations of three
  const auto fleet = WithHostile(run, -1000), worse = WithHostile(run, -2000);
  EXPECT_EQ(fleet->refused(), (std::vector<int64_t>{0, 2, 0}));
  EXPECT_EQ(fleet->weights(), worse->weights());
  // Nothing of a refused update is in the next one.
  EXPECT_EQ(WithHostile(run, -1000, 1)->refused(), (std::vector<int64_t>{0, 1, 0}));
}

TEST(InProcessFleet, WhoIsSetAsideAtOnceTakesNoPartAnyMore) {
  RunConfig run = DigitsRun();
  run.rounds.clients = 3;
  run.clients.set_aside_after = 10;
  const auto fleet = WithHostile(run, -1000), worse = WithHostile(run, -2000);
  EXPECT_EQ(fleet->refused(), (std::vector<int64_t>{0, 1, 0}));
  EXPECT_EQ(fleet->weights(), worse->weights());
  EXPECT_GT(fleet->largest_ratio(), 100);
  EXPECT_EQ(fleet->largest_ratio_round(), 1);
  EXPECT_LT(WithHostile(run, 1)->largest_ratio(), 3);
}

TEST(InProcessFleet, RefusesRunsThatAskForMore) {
  std::vector<RunConfig> runs(7, DigitsRun());
  runs[0].downstream = DownstreamMode::kCoded;
  runs[1].server.name = "adam";
  runs[2].control.name = "joint";
  runs[3].rounds.selection = Selection::kRandom;
  runs[4].rounds.weighting = Weighting::kSamples;
  runs[5].rounds.buffered = true;
  runs[6].rounds.cohort = 1;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto fleet = InProcessFleet::Create(runs[i], "", "cpu");
    EXPECT_EQ(fleet.status().code(), absl::StatusCode::kUnimplemented) << i;
  }
}

TEST(InProcessFleet, StopsWithTheStatusOfItsListener) {
  const auto fleet = InProcessFleet::Create(DigitsRun(), "", "cpu");
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  const absl::Status status = (*fleet)->Round(
      [](int64_t client, const Feedback&, const std::string&) { return absl::DataLossError(std::to_string(client)); });
  EXPECT_EQ(status, absl::DataLossError("0"));
}

}  // namespace
}  // namespace terse
