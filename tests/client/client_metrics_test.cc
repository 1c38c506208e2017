// Tests the values of a client's metrics, as they are scraped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/rpc/metrics.h"
#include "core/version.h"
#include "tests/testing/failing_state.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ClientMetricsTest : public ::testing::Test {
 protected:
  std::string Text() {
    clock_.Advance(60);  // beyond what is kept for others
    return route_.handler(HttpRequest()).value().body->plain;
  }
  // One series' value; -1 when there is none.
  double Value(const std::string& series) {
    const std::string text = Text();
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
      double value = 0;
      if (parts.first == absl::StrCat("terse_client_", series) && absl::SimpleAtod(parts.second, &value)) return value;
    }
    return -1;
  }
  double Wire(const std::string& direction) {
    return Value(absl::StrCat("wire_bytes_total{direction=\"", direction, "\"}"));
  }
  double Updates(const std::string& verdict) { return Value(absl::StrCat("updates_total{verdict=\"", verdict, "\"}")); }

  FakeClock clock_;
  ClientMetrics metrics_{"a"};
  const HttpRoute route_ = metrics_.Route(&clock_);
};

TEST_F(ClientMetricsTest, CountersBeginAtZeroAndUnknownValuesAreAbsent) {
  EXPECT_EQ(Value(absl::StrCat("build_info{client=\"a\",version=\"", kVersion, "\"}")), 1);
  for (const char* series :
       {"connected", "connections_total", "rounds_trained_total", "local_steps_total", "training_seconds_total",
        "update_pending", "retries_total{trouble=\"connection\"}", "retries_total{trouble=\"disk\"}"}) {
    EXPECT_EQ(Value(series), 0) << series;
  }
  for (const char* verdict : {"applied", "not_applied", "reset"}) EXPECT_EQ(Updates(verdict), 0) << verdict;
  EXPECT_EQ(Wire("up"), 0);
  EXPECT_EQ(Wire("down"), 0);
  for (const char* series : {"loss", "residual_norm", "version"}) EXPECT_EQ(Value(series), -1) << series;
}

TEST_F(ClientMetricsTest, TheWorkOfTwoRounds) {
  metrics_.OnJoined(false, 0.5);
  EXPECT_EQ(Value("residual_norm"), 0.5);
  metrics_.OnSealed({10, 1'500'000, 0.75f});
  EXPECT_EQ(Value("rounds_trained_total"), 1);
  EXPECT_EQ(Value("local_steps_total"), 10);
  EXPECT_EQ(Value("training_seconds_total"), 1.5);
  EXPECT_EQ(Value("loss"), 0.75);
  EXPECT_EQ(Value("update_pending"), 1);
  EXPECT_EQ(Value("residual_norm"), 0.5) << "of the newest verdict";
  metrics_.OnSettled(Outcome::kApplied, 0.25);
  EXPECT_EQ(Updates("applied"), 1);
  EXPECT_EQ(Value("update_pending"), 0);
  EXPECT_EQ(Value("residual_norm"), 0.25);
  metrics_.OnSealed({20, 500'000, 0.5f});
  metrics_.OnSettled(Outcome::kNotApplied, 4);
  EXPECT_EQ(Value("rounds_trained_total"), 2);
  EXPECT_EQ(Value("local_steps_total"), 30);
  EXPECT_EQ(Value("training_seconds_total"), 2);
  EXPECT_EQ(Value("loss"), 0.5);
  EXPECT_EQ(Updates("not_applied"), 1);
  metrics_.OnSettled(Outcome::kReset, 0);
  EXPECT_EQ(Updates("reset"), 1);
  EXPECT_EQ(Updates("applied"), 1);
  EXPECT_EQ(Value("residual_norm"), 0);
}

TEST_F(ClientMetricsTest, AnUpdateThatAnEarlierProcessSealed) {
  metrics_.OnJoined(true, 3);
  EXPECT_EQ(Value("update_pending"), 1);
  EXPECT_EQ(Value("rounds_trained_total"), 0);
}

TEST_F(ClientMetricsTest, TheVersionThatIsHeld) {
  metrics_.OnVersion(7);
  EXPECT_EQ(Value("version"), 7);
  metrics_.OnVersion(absl::nullopt);
  EXPECT_EQ(Value("version"), -1);
  metrics_.OnVersion(0);
  EXPECT_EQ(Value("version"), 0);
}

TEST_F(ClientMetricsTest, BytesAreThoseOfAllConnectionsUpToTheScrape) {
  WireBytes wire = {100, 2000};
  metrics_.OnConnected([&wire] { return wire; });
  EXPECT_EQ(Value("connected"), 1);
  EXPECT_EQ(Wire("up"), 100);
  EXPECT_EQ(Wire("down"), 2000);
  wire = {150, 2500};
  EXPECT_EQ(Wire("up"), 150);
  wire = {170, 2500};
  metrics_.OnDisconnected();
  wire = {9999, 9999};  // of nobody's concern any more
  EXPECT_EQ(Value("connected"), 0);
  EXPECT_EQ(Wire("up"), 170);
  EXPECT_EQ(Wire("down"), 2500);
  metrics_.OnConnected([] { return WireBytes{30, 40}; });
  EXPECT_EQ(Wire("up"), 200);
  EXPECT_EQ(Wire("down"), 2540);
  EXPECT_EQ(Value("connections_total"), 2);
  metrics_.OnDisconnected();
}

TEST_F(ClientMetricsTest, RetriesByWhatIsInTrouble) {
  metrics_.OnRetry(ClientMetrics::Trouble::kDisk);
  metrics_.OnRetry(ClientMetrics::Trouble::kDisk);
  metrics_.OnRetry(ClientMetrics::Trouble::kConnection);
  EXPECT_EQ(Value("retries_total{trouble=\"disk\"}"), 2);
  EXPECT_EQ(Value("retries_total{trouble=\"connection\"}"), 1);
}

TEST_F(ClientMetricsTest, CallsOfTheStateAreTimedAndStillDoTheirWork) {
  const TempDirectory directory;
  const std::unique_ptr<ClientState> real = *ClientState::Open(directory.path());
  auto failing = std::make_unique<FailingState>(real.get());
  FailingState* const disk = failing.get();
  const std::unique_ptr<ClientState> state = metrics_.Meter(std::move(failing));
  EXPECT_EQ(Value("state_errors_total{call=\"Seal\"}"), 0);
  EXPECT_EQ(Value("state_errors_total{call=\"Settle\"}"), 0);
  const Id128 lineage = {1, 2};
  ASSERT_EQ(state->Begin(lineage, lineage, Durability::kStrict), absl::OkStatus());
  SealedUpdate update;
  update.update_id = {3, 4};
  update.message = "m";
  disk->fail_seal = true;
  EXPECT_TRUE(absl::IsUnavailable(state->Seal({1, 2}, update, "trainer", "history")));
  disk->fail_seal = false;
  ASSERT_EQ(state->Seal({1, 2}, update, "trainer", "history"), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(state->Seal({1, 2}, update, "trainer", "history"))) << "is sealed already";
  EXPECT_EQ(Value("state_seconds_count{call=\"Seal\"}"), 3);
  EXPECT_GT(Value("state_seconds_sum{call=\"Seal\"}"), 0);
  EXPECT_EQ(Value("state_errors_total{call=\"Seal\"}"), 1) << "an answer is no error of the disk";
  EXPECT_TRUE(state->state().sealed.has_value());

  disk->fail_read = true;
  EXPECT_TRUE(absl::IsUnavailable(state->Read().status()));
  EXPECT_EQ(Value("state_errors_total{call=\"Read\"}"), 1);
  disk->fail_read = false;
  const absl::StatusOr<StoredState> stored = state->Read();
  ASSERT_EQ(stored.status(), absl::OkStatus());
  EXPECT_EQ(stored->dense, std::vector<float>({1, 2}));
  EXPECT_EQ(stored->trainer_state, "trainer");
  EXPECT_EQ(stored->history, "history");
  EXPECT_EQ(Value("state_seconds_count{call=\"Read\"}"), 2);

  ASSERT_EQ(state->Settle(true), absl::OkStatus());
  EXPECT_EQ(state->state().prev_applied, update.update_id);
  ASSERT_EQ(state->Reset(lineage), absl::OkStatus());
  EXPECT_EQ(state->state().prev_applied, lineage);
  ASSERT_EQ(state->SaveModel({lineage, 5, {1, 2}}), absl::OkStatus());
  EXPECT_EQ(state->LoadModel().value().version, 5);
  ASSERT_EQ(state->Flush(), absl::OkStatus());
  EXPECT_FALSE(state->lost());
  disk->fail_move = true;
  EXPECT_TRUE(absl::IsUnavailable(state->Move({5, 6}, {3, 4}).status()));
  EXPECT_EQ(Value("state_errors_total{call=\"Move\"}"), 1);
  disk->fail_move = false;
  ASSERT_EQ(state->Move({5, 6}, {3, 4}).status(), absl::OkStatus());
  EXPECT_EQ(state->state().lineage, Id128({5, 6}));
  EXPECT_EQ(Value("state_seconds_count{call=\"Move\"}"), 2);
  for (const char* call : {"Begin", "Settle", "Reset", "SaveModel", "Flush"}) {
    EXPECT_EQ(Value(absl::StrCat("state_seconds_count{call=\"", call, "\"}")), 1) << call;
  }
}

TEST_F(ClientMetricsTest, AnswersScrapesAndNothingElse) {
  HttpOptions options;
  options.address = "127.0.0.1:0";
  const absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start(options, {route_});
  ASSERT_EQ(server.status(), absl::OkStatus());
  httplib::Client browser((*server)->url());
  const httplib::Result reply = browser.Get("/metrics");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(reply->body, HasSubstr("# TYPE terse_client_rounds_trained_total counter\n"));
  EXPECT_THAT(reply->body, Not(HasSubstr("terse_run")));
  EXPECT_EQ(browser.Get("/")->status, 404);
}

}  // namespace
}  // namespace terse
