// Tests what is counted, and when: after it is durable, and not when it failed.
#include "coordinator/web/metered_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coordinator/web/metrics.h"
#include "tests/testing/failing_store.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

class MeteredStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<RunStore>> real = RunStore::Open(directory_.path());
    ASSERT_TRUE(real.ok()) << real.status();
    auto failing = std::make_unique<FailingStore>(*std::move(real));
    failing_ = failing.get();
    store_ = std::make_unique<MeteredStore>("r", std::move(failing), &registry_);
    RunRecord run;
    run.name = "r";
    run.lineage = Id128{1, 2};
    run.parameters = 2;
    const absl::Status created = store_->CreateRun(run, {1, 2});
    ASSERT_TRUE(created.ok()) << created;
    ASSERT_TRUE(store_->RegisterClient("a", 1).ok());
  }

  // One series' value; -1 when there is none.
  double Value(const std::string& series) {
    const std::string text = prometheus::TextSerializer().Serialize(registry_.Collect());
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
      double value = 0;
      if (parts.first == series && absl::SimpleAtod(parts.second, &value)) return value;
    }
    return -1;
  }
  double Rounds(const std::string& outcome) {
    return Value(absl::StrCat("terse_rounds_total{outcome=\"", outcome, "\",run=\"r\"}"));
  }
  double Updates(const std::string& verdict) {
    return Value(absl::StrCat("terse_updates_total{run=\"r\",verdict=\"", verdict, "\"}"));
  }
  double Bytes(const std::string& counted, const std::string& direction) {
    return Value(absl::StrCat("terse_bytes_total{counted=\"", counted, "\",direction=\"", direction, "\",run=\"r\"}"));
  }
  double Seconds(const std::string& phase, const std::string& what) {
    return Value(absl::StrCat("terse_round_seconds_", what, "{phase=\"", phase, "\",run=\"r\"}"));
  }
  void FailNext(const std::string& name) {
    failing_->fault = [name](absl::string_view call, bool after) {
      return call == name && !after ? absl::UnavailableError("the disk") : absl::OkStatus();
    };
  }

  absl::Status Close(int64_t now_us) {
    ChosenUpdate update;
    update.update_id = Id128{0, 7};
    update.train_us = 3'000'000;
    return store_->CloseRound(1, {update}, now_us);
  }
  static Commit MakeCommit() {
    Commit commit;
    commit.round = 1;
    commit.model_hash = Id128{1, 1};
    commit.downstream = "d";
    commit.committed_us = 10'500'000;
    commit.ledger = {{1, 0, Direction::kUp, 100, 10, 12}, {1, 0, Direction::kDown, 200, 20, 22}};
    return commit;
  }

  TempDirectory directory_;
  prometheus::Registry registry_;
  FailingStore* failing_ = nullptr;
  std::unique_ptr<MeteredStore> store_;
};

TEST_F(MeteredStoreTest, ACommittedRound) {
  ASSERT_TRUE(store_->OpenRound(1, 0, 2'000'000).ok());
  ASSERT_TRUE(Close(10'000'000).ok());
  EXPECT_EQ(Rounds("committed"), 0);
  EXPECT_EQ(Updates("applied"), 0);
  EXPECT_EQ(Seconds("training", "count"), 0) << "of a round that may yet be aborted";
  ASSERT_TRUE(store_->CommitRound(MakeCommit(), true).ok());
  EXPECT_EQ(Rounds("committed"), 1);
  EXPECT_EQ(Updates("applied"), 1);
  EXPECT_EQ(Updates("refused"), 0);
  EXPECT_DOUBLE_EQ(Seconds("collecting", "sum"), 8);
  EXPECT_DOUBLE_EQ(Seconds("committing", "sum"), 0.5);
  EXPECT_DOUBLE_EQ(Seconds("training", "sum"), 3);
  EXPECT_EQ(Bytes("dense", "up"), 100);
  EXPECT_EQ(Bytes("payload", "up"), 10);
  EXPECT_EQ(Bytes("wire", "down"), 22);
  ASSERT_TRUE(store_->AddLedger({{0, 0, Direction::kUp, 0, 0, 5}}).ok());
  EXPECT_EQ(Bytes("wire", "up"), 17);
  // The next round was opened by the commit.
  ChosenUpdate update;
  update.prev_applied = Id128{0, 7};
  update.update_id = Id128{0, 8};
  ASSERT_TRUE(store_->CloseRound(2, {update}, 12'500'000).ok());
  Commit second = MakeCommit();
  second.round = 2;
  second.base_version = 1;
  second.committed_us = 12'600'000;
  ASSERT_TRUE(store_->CommitRound(second, false).ok());
  EXPECT_DOUBLE_EQ(Seconds("collecting", "sum"), 10);
}

// Names are the clients' own, so those of rounds before do not stay.
TEST_F(MeteredStoreTest, MetricsByNameAreThoseOfTheNewestRound) {
  const auto metric = [this](const std::string& kind, const std::string& name) {
    return Value(absl::StrCat("terse_metric{kind=\"", kind, "\",name=\"", name, "\",run=\"r\"}"));
  };
  ASSERT_TRUE(store_->OpenRound(1, 0, 2'000'000).ok());
  ChosenUpdate update;
  update.update_id = Id128{0, 7};
  update.metrics = {{MetricKind::kTraining, "norm", 1.5, 10}, {MetricKind::kEvaluation, "accuracy", 0.5, 10}};
  ASSERT_TRUE(store_->CloseRound(1, {update}, 10'000'000).ok());
  ASSERT_TRUE(store_->CommitRound(MakeCommit(), true).ok());
  EXPECT_EQ(metric("training", "norm"), 1.5);
  EXPECT_EQ(metric("evaluation", "accuracy"), 0.5);
  ASSERT_TRUE(store_->SetEvaluation(1, {0.5, 1, {}, {}, {{MetricKind::kTest, "f1", 0.25, 7}}}).ok());
  EXPECT_EQ(metric("test", "f1"), 0.25);
  update.prev_applied = update.update_id;
  update.update_id = Id128{0, 8};
  update.metrics = {{MetricKind::kEvaluation, "accuracy", 0.75, 10}};
  ASSERT_TRUE(store_->CloseRound(2, {update}, 12'500'000).ok());
  EXPECT_EQ(metric("training", "norm"), -1);
  EXPECT_EQ(metric("evaluation", "accuracy"), 0.75);
  EXPECT_EQ(metric("test", "f1"), 0.25) << "until the next evaluation";
}

TEST_F(MeteredStoreTest, WhatFailedDidNotHappen) {
  ASSERT_TRUE(store_->OpenRound(1, 0, 2'000'000).ok());
  ASSERT_TRUE(Close(10'000'000).ok());
  FailNext("CommitRound");
  EXPECT_EQ(store_->CommitRound(MakeCommit(), true).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Rounds("committed"), 0);
  EXPECT_EQ(Updates("applied"), 0);
  EXPECT_EQ(Bytes("wire", "up"), 0);
  EXPECT_EQ(Value("terse_store_errors_total{call=\"CommitRound\",run=\"r\"}"), 1);
  for (const char* call : {"RecordNotApplied", "RecordReset", "RecordFailure", "AddLedger", "AbortRound"}) {
    FailNext(call);
    EXPECT_FALSE(store_->RecordNotApplied(0).ok() && store_->RecordReset(0).ok() && store_->RecordFailure(0).ok() &&
                 store_->AddLedger({{0, 0, Direction::kUp, 1, 1, 1}}).ok() && store_->AbortRound(1, "x", 1).ok())
        << call;
    EXPECT_EQ(Value(absl::StrCat("terse_store_errors_total{call=\"", call, "\",run=\"r\"}")), 1);
  }
  EXPECT_EQ(Updates("not_applied"), 4);
  EXPECT_EQ(Updates("reset"), 3);
  EXPECT_EQ(Value("terse_client_failures_total{run=\"r\"}"), 2);
  EXPECT_EQ(Bytes("wire", "up"), 1);
  EXPECT_EQ(Rounds("aborted"), 0);
}

TEST_F(MeteredStoreTest, AnAbortedRoundWhoseUpdateWasRefused) {
  ASSERT_TRUE(store_->OpenRound(1, 0, 2'000'000).ok());
  ASSERT_TRUE(store_->CloseRound(1, {}, 3'000'000, {{0, Id128{0, 9}, "too large"}}).ok());
  EXPECT_EQ(Updates("refused"), 1);
  EXPECT_EQ(Updates("reset"), 0);
  ASSERT_TRUE(store_->AbortRound(1, "by an operator", 3'000'000).ok());
  EXPECT_EQ(Rounds("aborted"), 1);
  EXPECT_EQ(Seconds("collecting", "count"), 0);
}

TEST_F(MeteredStoreTest, ARoundOfAnEarlierProcessHasNoBeginning) {
  ASSERT_TRUE(store_->OpenRound(1, 0, 2'000'000).ok());
  // This is as after a restart: another store stands in front of the same state.
  prometheus::Registry registry;
  MeteredStore later("r", std::make_unique<FailingStore>(std::move(store_)), &registry);
  ChosenUpdate update;
  update.update_id = Id128{0, 7};
  ASSERT_TRUE(later.CloseRound(1, {update}, 10'000'000).ok());
  ASSERT_TRUE(later.CommitRound(MakeCommit(), false).ok());
  const std::string text = prometheus::TextSerializer().Serialize(registry.Collect());
  EXPECT_THAT(text, HasSubstr("terse_round_seconds_count{phase=\"collecting\",run=\"r\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("terse_round_seconds_count{phase=\"committing\",run=\"r\"} 1\n"));
}

TEST_F(MeteredStoreTest, TheSeriesOfARunEndWithIt) {
  Metrics metrics;
  const TempDirectory other;
  const std::unique_ptr<RunStore> stores[] = {
      metrics.Meter("kept", std::move(store_)),
      metrics.Meter("gone", std::make_unique<FailingStore>(RunStore::Open(other.path()).value()))};
  std::vector<RunSample> samples(2);
  samples[0].run = "kept";
  samples[1].run = "gone";
  FakeClock clock;
  const HttpRoute route = metrics.Route([&] { return samples; }, &clock);
  const auto text = [&] {
    clock.Advance(60);  // beyond what is kept for others
    return route.handler(HttpRequest()).value().body->plain;
  };
  EXPECT_THAT(text(), testing::AllOf(HasSubstr("terse_rounds_total{outcome=\"committed\",run=\"gone\"}"),
                                     HasSubstr("terse_run_version{run=\"gone\"}")));
  samples.pop_back();
  const std::string later = text();
  EXPECT_THAT(later, testing::Not(HasSubstr("run=\"gone\"")));
  EXPECT_THAT(later, HasSubstr("terse_rounds_total{outcome=\"committed\",run=\"kept\"}"));
  EXPECT_THAT(later, HasSubstr("terse_build_info{version="));
}

TEST(MetricsTest, TheEngineTellsTheTimesOfItsEvents) {
  Metrics metrics;
  EventTimes times;
  times.Record(1'200);
  times.Record(3'000'000'000);
  FakeClock clock;
  const auto sample = [&times] {
    RunSample run;
    run.run = "r";
    run.event_times = times.Counts();
    return std::vector<RunSample>{run};
  };
  const std::string text = metrics.Route(sample, &clock).handler(HttpRequest()).value().body->plain;
  EXPECT_THAT(text, testing::AllOf(HasSubstr("# TYPE terse_event_seconds histogram\n"),
                                   HasSubstr("terse_event_seconds_count{run=\"r\"} 2\n"),
                                   HasSubstr("terse_event_seconds_bucket{run=\"r\",le=\"1e-06\"} 0\n"),
                                   HasSubstr("terse_event_seconds_bucket{run=\"r\",le=\"1.414e-06\"} 1\n"),
                                   HasSubstr("terse_event_seconds_bucket{run=\"r\",le=\"+Inf\"} 2\n")));
}

TEST_F(MeteredStoreTest, EveryCallIsTimed) {
  const std::string count = "terse_store_seconds_count{call=\"GetHead\",run=\"r\"}";
  EXPECT_EQ(Value(count), -1);
  ASSERT_TRUE(store_->GetHead().ok());
  ASSERT_TRUE(store_->GetHead().ok());
  EXPECT_EQ(Value(count), 2);
}

TEST_F(MeteredStoreTest, TheNewestEvaluation) {
  ASSERT_TRUE(store_->OpenRound(1, 0, 2'000'000).ok());
  ASSERT_TRUE(Close(10'000'000).ok());
  ASSERT_TRUE(store_->CommitRound(MakeCommit(), false).ok());
  Evaluation evaluation;
  evaluation.accuracy = 0.75;
  evaluation.loss = 0.5;
  ASSERT_TRUE(store_->SetEvaluation(1, evaluation).ok());
  EXPECT_EQ(Value("terse_accuracy{run=\"r\"}"), 0.75);
  EXPECT_EQ(Value("terse_test_loss{run=\"r\"}"), 0.5);
}

TEST_F(MeteredStoreTest, RegressionHasNoAccuracy) {
  ASSERT_TRUE(store_->OpenRound(1, 0, 2'000'000).ok());
  ASSERT_TRUE(Close(10'000'000).ok());
  ASSERT_TRUE(store_->CommitRound(MakeCommit(), false).ok());
  ASSERT_TRUE(store_->SetEvaluation(1, {absl::nullopt, 0.5}).ok());
  EXPECT_EQ(Value("terse_test_loss{run=\"r\"}"), 0.5);
  EXPECT_EQ(Value("terse_accuracy{run=\"r\"}"), -1) << "there is none";
}

}  // namespace
}  // namespace terse
