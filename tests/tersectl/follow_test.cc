// `tersectl follow` and its parts, without a network: what it refuses, and how it goes on from files that a crash left.
// tests/e2e/follow_test.py has it beside a fleet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tersectl/exit_codes.h"
#include "tersectl/follow/http_client.h"
#include "tersectl/follow/mlflow_target.h"
#include "tersectl/follow/otlp_target.h"
#include "tersectl/follow/position_file.h"
#include "tersectl/follow/tensorboard_target.h"
#include "tersectl/follow/webhook_target.h"
#include "tersectl/tensorboard.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(FollowCommandTest, WantsAPlace) {
  const CtlOutcome outcome = Invoke({"follow", "--admin", "127.0.0.1:1"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("give --tensorboard, --mlflow, --otlp, --webhook or --json"));
}

TEST(FollowCommandTest, RefusesSecretsThatOthersWouldSee) {
  const CtlOutcome outcome = Invoke({"follow", "--mlflow", "https://ada:hidden@mlflow.example"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("https://mlflow.example: a user and password in the address would be seen"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("hidden")));
}

TEST(FollowCommandTest, RefusesWhatIsNoUrlWithoutShowingIt) {
  const CtlOutcome outcome = Invoke({"follow", "--otlp", "the-token"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("no address of a server; give http://HOST:PORT"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("the-token")));
}

TEST(FollowCommandTest, WebhooksNeedAFolderForTheirPositions) {
  EXPECT_EQ(Invoke({"follow", "--webhook", "http://127.0.0.1:1/"}).code, kExitUsage);
}

TEST(FollowCommandTest, SaysThatThereIsNoSuchRun) {
  FakeAdminServer server;
  const CtlOutcome outcome = Invoke({"follow", "--admin", server.address(), "--run", "none", "--json"});
  EXPECT_EQ(outcome.code, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("the coordinator has no run 'none'"));
}

TEST(FollowCommandTest, SaysThatACoordinatorIsTooOld) {
  FakeAdminServer server;
  server.runs.emplace_back().set_name("r");
  server.runs.back().set_state("active");
  server.status.set_run("r");
  // It serves no `complete` in its rounds, and never will: the run is not followed, and nobody waits for it in silence.
  const CtlOutcome outcome = Invoke({"follow", "--admin", server.address(), "--run", "r", "--json", "--patience", "0"});
  EXPECT_EQ(outcome.code, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("of an earlier release"));
}

TEST(HttpTest, UrlsAreShownWithoutTheirPaths) {
  EXPECT_EQ(ShownUrl("https://hooks.example/services/T0/secret"), "https://hooks.example/...");
  EXPECT_EQ(ShownUrl("http://127.0.0.1:5000"), "http://127.0.0.1:5000");
  EXPECT_EQ(ShownUrl("http://127.0.0.1:5000/"), "http://127.0.0.1:5000");
  EXPECT_EQ(ShownUrl("https://u:p@h/x?token=1"), "https://h/...");
}

TEST(HttpTest, UrlsOfServers) {
  for (const char* good : {"http://localhost", "https://h:1/p", "http://[::1]:5000"})
    EXPECT_TRUE(CheckUrl(good).ok()) << good;
  for (const char* bad : {"", "localhost:5000", "ftp://h", "http://", "https:///x", "http://u@h"}) {
    EXPECT_FALSE(CheckUrl(bad).ok()) << bad;
  }
}

TEST(MlflowTest, NamesOfMetrics) {
  EXPECT_EQ(MlflowMetricName("test/top-5 of_all.x"), "test/top-5 of_all.x");
  EXPECT_EQ(MlflowMetricName("train/recall@10"), "train/recall_10");
  EXPECT_EQ(MlflowMetricName("train//a/../b/."), "train/_/a/_/b/_");
}

// A run's tracker, and the events that a server on a loopback port got from it.
class WebhookTrackerTest : public ::testing::Test {
 protected:
  WebhookTrackerTest() {
    server_.Post("/hook", [this](const httplib::Request& request, httplib::Response& response) {
      events_.push_back(nlohmann::json::parse(request.body));
      response.status = 200;
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) absl::SleepFor(absl::Milliseconds(1));
    run_.set_run("r");
    run_.set_lineage(std::string(16, '\xab'));
    Begin();
  }
  ~WebhookTrackerTest() override {
    tracker_.reset();
    target_.reset();  // its connection keeps the server
    server_.stop();
    thread_.join();
  }
  // As another process.
  void Begin() {
    target_ = MakeWebhookTarget(
        {absl::StrCat("http://127.0.0.1:", port_, "/hook"), "", directory_.path(), absl::Seconds(60)});
    tracker_ = *target_->Begin(run_, true);
  }
  // Looks at the run in that phase, so many seconds after the last look, and delivers.
  void Look(const std::string& phase, int seconds = 1) {
    now_ += absl::Seconds(seconds);
    v1::Run run;
    run.set_phase(phase);
    tracker_->TakeRun(run, now_);
    ASSERT_TRUE(tracker_->Deliver().ok());
  }
  void Happen(uint64_t id, const std::string& kind, int64_t client) {
    v1::Event event;
    event.set_id(id);
    event.set_kind(kind);
    event.set_client(client);
    if (client >= 0) event.set_client_name(absl::StrCat("client-", client));
    event.set_detail("why");
    tracker_->TakeEvent(event);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const nlohmann::json& event : events_) names.push_back(event["event"]);
    return names;
  }

  const TempDirectory directory_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  v1::Status run_;
  std::unique_ptr<FollowTarget> target_;
  std::unique_ptr<RunTracker> tracker_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<nlohmann::json> events_;
};

TEST_F(WebhookTrackerTest, TellsOfTroubleOnceAndOfItsEnd) {
  Look("collecting");
  Look("suspended: the disk is full");
  Look("suspended: the disk is full");
  ASSERT_THAT(Names(), ElementsAre("run_suspended"));
  EXPECT_EQ(events_[0]["detail"], "the disk is full");
  EXPECT_EQ(events_[0]["client"], nullptr);
  EXPECT_EQ(events_[0]["time"], "1970-01-01T00:00:02.000000Z");
  Begin();
  Look("suspended: the disk is full");
  EXPECT_EQ(events_.size(), 1u) << "another process knows that it was told";
  Happen(7, "run_suspended", -1);
  Look("collecting");
  Look("down: the database is damaged");
  EXPECT_THAT(Names(), ElementsAre("run_suspended", "run_recovered", "run_down"));
  EXPECT_EQ(tracker_->EventsAfter(), 7u);
}

TEST_F(WebhookTrackerTest, AClientIsLostAfterTimeInWhichTheCoordinatorWasThere) {
  Happen(1, "client_joined", 0);
  Happen(2, "client_failed", 0);
  Happen(3, "client_left", 0);
  Happen(4, "client_left", 1);
  Look("collecting");
  Look("collecting", 3600);  // the coordinator was away, so nobody could come back
  Begin();
  for (int i = 0; i < 20; ++i) Look("collecting");
  Happen(5, "client_joined", 1);
  for (int i = 0; i < 36; ++i) Look("collecting");
  EXPECT_THAT(Names(), IsEmpty());
  for (int i = 0; i < 5; ++i) Look("collecting");
  ASSERT_THAT(Names(), ElementsAre("client_lost"));
  EXPECT_EQ(events_[0]["client"], "client-0");
  EXPECT_THAT(events_[0]["detail"].get<std::string>(), HasSubstr("did not come back within 1m"));
  for (int i = 0; i < 100; ++i) Look("collecting");
  EXPECT_EQ(events_.size(), 1u);
}

TEST_F(WebhookTrackerTest, ClientsLeaveARunThatIsOver) {
  Happen(1, "client_left", 0);
  Happen(2, "run_ended", -1);
  Look("ended");
  Begin();
  EXPECT_EQ(tracker_->EventsAfter(), 1u) << "how it ended is not known yet, so that its end is read again";
  Happen(2, "run_ended", -1);
  Happen(3, "client_left", 1);
  tracker_->TakeEnd({"stopped", "by the operator"});
  for (int i = 0; i < 100; ++i) Look("ended");
  EXPECT_THAT(Names(), ElementsAre("run_stopped"));
  EXPECT_EQ(events_[0]["detail"], "why");
}

// RFC 4231, test case 2.
TEST(WebhookTest, SignsWithHmacSha256) {
  EXPECT_EQ(WebhookSignature("Jefe", "what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(OtlpTest, HeadersComeFromTheEnvironment) {
  const auto headers = [](const char* value) {
    setenv("OTEL_EXPORTER_OTLP_HEADERS", value, 1);
    const absl::StatusOr<std::vector<std::string>> read = OtlpHeaders();
    unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
    return read;
  };
  EXPECT_THAT(*headers("authorization=Bearer%20a=b, x-team = blue"),
              ElementsAre("authorization: Bearer a=b", "x-team: blue"));
  EXPECT_THAT(*headers(""), IsEmpty());
  for (const char* bad : {"no-value", "=x", "a=b%0d%0ac: d"}) {
    EXPECT_FALSE(headers(bad).ok()) << bad;
    EXPECT_THAT(headers(bad).status().message(), Not(HasSubstr(bad)));
  }
}

TEST(PositionFileTest, IsReadAsItWasWritten) {
  const TempDirectory directory;
  const PositionFile file(directory.path(), "webhook", "https://h/secret", "ab");
  EXPECT_TRUE(file.Read()->empty());
  ASSERT_TRUE(file.Write({{"event", 7}}).ok());
  EXPECT_EQ(file.Read()->at("event"), 7);
  EXPECT_TRUE(PositionFile(directory.path(), "webhook", "https://h/other", "ab").Read()->empty());
  EXPECT_TRUE(PositionFile(directory.path(), "webhook", "https://h/secret", "cd").Read()->empty());
}

v1::Status RunOf(const std::string& name, const std::string& lineage) {
  v1::Status run;
  run.set_run(name);
  run.set_lineage(lineage);
  run.set_created_us(1'700'000'000'000'000);
  return run;
}

v1::Round CommittedRound(uint64_t id) {
  v1::Round round;
  round.set_id(id);
  round.set_state("committed");
  round.set_opened_us(1'700'000'000'000'000);
  round.set_committed_us(1'700'000'001'000'000);
  round.set_wire_bytes_up(100);
  return round;
}

// Follows the rounds 1 to `last` into the folder; returns how that ended.
absl::Status FollowInto(const std::string& folder, const v1::Status& run, uint64_t last) {
  const std::unique_ptr<FollowTarget> target = MakeTensorBoardTarget(folder);
  absl::StatusOr<std::unique_ptr<RunTracker>> tracker = target->Begin(run, true);
  if (!tracker.ok()) return tracker.status();
  for (uint64_t id = 1; id <= last; ++id) (*tracker)->TakeRound(CommittedRound(id), {});
  return (*tracker)->Deliver();
}

TEST(TensorBoardTargetTest, GoesOnFromEveryPlaceWhereAFileMayEnd) {
  const TempDirectory directory;
  const v1::Status run = RunOf("r", std::string(16, '\xab'));
  ASSERT_TRUE(FollowInto(directory.path(), run, 4).ok());
  const std::string path = directory.path() + "/r/events.out.tfevents.1700000000.abababababababab";
  const std::string whole = Slurp(path);
  const TensorBoardPart part = ReadTensorBoard(whole);
  EXPECT_EQ(part.bytes, whole.size());
  EXPECT_EQ(part.step, 4u);
  EXPECT_EQ(whole,
            TensorBoardEvents(run, {CommittedRound(1), CommittedRound(2), CommittedRound(3), CommittedRound(4)}));
  for (size_t length = 0; length < whole.size(); ++length) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, length);
    ASSERT_TRUE(FollowInto(directory.path(), run, 4).ok());
    ASSERT_EQ(Slurp(path), whole) << "from " << length << " bytes";
  }
}

TEST(TensorBoardTargetTest, ADamagedRecordEndsThePartThatCounts) {
  const std::string whole = TensorBoardEvents(RunOf("r", ""), {CommittedRound(1), CommittedRound(2)});
  std::string damaged = whole;
  damaged.back() ^= 1;
  EXPECT_EQ(ReadTensorBoard(damaged).step, 1u);
  damaged = whole;
  damaged[0] ^= 1;
  EXPECT_EQ(ReadTensorBoard(damaged).bytes, 0u);
}

TEST(TensorBoardTargetTest, AnotherRunOfTheNameHasAFolderOfItsOwn) {
  const TempDirectory directory;
  ASSERT_TRUE(FollowInto(directory.path(), RunOf("r", std::string(16, '\xab')), 1).ok());
  ASSERT_TRUE(FollowInto(directory.path(), RunOf("r", std::string(16, '\xcd')), 2).ok());
  ASSERT_TRUE(FollowInto(directory.path(), RunOf("r", std::string(16, '\xcd')), 3).ok());
  EXPECT_EQ(ReadTensorBoard(Slurp(directory.path() + "/r/events.out.tfevents.1700000000.abababababababab")).step, 1u);
  EXPECT_EQ(
      ReadTensorBoard(Slurp(directory.path() + "/r-cdcdcdcdcdcdcdcd/events.out.tfevents.1700000000.cdcdcdcdcdcdcdcd"))
          .step,
      3u);
}

}  // namespace
}  // namespace terse
