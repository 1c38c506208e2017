// `tersectl follow` and its parts, without a network: what it refuses, and how it goes on from files that a crash left.
// tests/e2e/follow_test.py has it beside a fleet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tersectl/exit_codes.h"
#include "tersectl/follow/follower.h"
#include "tersectl/follow/mlflow_target.h"
#include "tersectl/follow/otlp_target.h"
#include "tersectl/follow/position_file.h"
#include "tersectl/follow/tensorboard_target.h"
#include "tersectl/follow/webhook_target.h"
#include "tersectl/http/http_client.h"
#include "tersectl/tensorboard.h"
#include "tests/tersectl/http_receiver.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(FollowCommandTest, WantsAPlace) {
  const CtlOutcome outcome = Invoke({"follow", "--admin", "127.0.0.1:1"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("give --tensorboard, --mlflow, --otlp, --webhook, --checkpoints or --json"));
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

TEST(FollowCommandTest, ATargetsErrorEndsTheOthersToo) {
  const TempDirectory directory;
  FakeAdminServer server;
  server.runs.emplace_back().set_name("r");
  server.runs.back().set_state("active");
  server.status.set_run("r");
  // The lines of JSON want rounds of this coordinator, which is too old for them; the webhook gets along without any.
  const CtlOutcome outcome = Invoke({"follow", "--admin", server.address(), "--webhook", "http://127.0.0.1:1/",
                                     "--state", directory.path(), "--json"});
  EXPECT_EQ(outcome.code, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("tersectl: standard output: the coordinator at "));
  EXPECT_THAT(outcome.err, HasSubstr("of an earlier release"));
}

// Takes nothing of a run but its end.
class EndTarget : public FollowTarget {
 public:
  std::string name() const override { return "the test"; }
  absl::StatusOr<std::unique_ptr<RunTracker>> Begin(const v1::Status&, bool) override {
    class Tracker : public RunTracker {
      absl::Status Deliver() override { return absl::OkStatus(); }
    };
    return std::make_unique<Tracker>();
  }
};

TEST(FollowerTest, ADamagedRunIsToldOfOnceAndPassedOver) {
  FakeAdminServer server;
  server.runs.emplace_back().set_name("r");
  server.runs.back().set_state("finished");
  server.status.set_run("r");
  server.presence = grpc::StatusCode::DATA_LOSS;
  AdminClient client = *AdminClient::Make({server.address(), {}}, absl::Seconds(5));
  EndTarget target;
  std::vector<std::string> remarks;
  const absl::Notification stop;
  Follower follower(
      &client, "r", &target, [&](const std::string& line) { remarks.push_back(line); }, &stop);
  int looks = 0;
  const absl::Status followed = follower.Follow(absl::Minutes(1), [&] {
    if (++looks == 4) server.presence = grpc::StatusCode::OK;
  });
  EXPECT_TRUE(followed.ok()) << followed;
  EXPECT_THAT(remarks,
              ElementsAre(AllOf(HasSubstr("the test: run 'r': "), HasSubstr("as the test has it; trying again")),
                          "the test: run 'r' goes on"));
}

TEST(FollowerTest, EndsWhenItIsTold) {
  FakeAdminServer server;
  server.runs.emplace_back().set_name("r");
  server.status.set_run("r");
  AdminClient client = *AdminClient::Make({server.address(), {}}, absl::Seconds(5));
  EndTarget target;
  absl::Notification stop;
  Follower follower(
      &client, "", &target, [](const std::string&) {}, &stop);
  const absl::Status followed = follower.Follow(absl::InfiniteDuration(), [&] { stop.Notify(); });
  EXPECT_TRUE(absl::IsCancelled(followed)) << followed;
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

TEST(MlflowTest, AnswersOfAnotherKindAreTroubleOfTheServer) {
  const std::string run = FoundRun("{}");
  const struct {
    std::string found, created, experiment;
  } kAnswers[] = {
      {absl::StrCat("[", FoundRun("null"), "]"), run, R"({"experiment_id": "1"})"},
      {absl::StrCat("[", FoundRun(R"({"metrics": [{"key": "x", "step": "five"}]})"), "]"), run,
       R"({"experiment_id": "1"})"},
      {absl::StrCat("[", FoundRun(R"({"metrics": [{"key": "x", "step": 0.5}]})"), "]"), run,
       R"({"experiment_id": "1"})"},
      {absl::StrCat("[", FoundRun(R"({"metrics": [{"key": 5, "step": 5}]})"), "]"), run, R"({"experiment_id": "1"})"},
      {absl::StrCat("[", FoundRun(R"({"metrics": "x"})"), "]"), run, R"({"experiment_id": "1"})"},
      {absl::StrCat("[", FoundRun(R"({"params": [5]})"), "]"), run, R"({"experiment_id": "1"})"},
      {"[5]", run, R"({"experiment_id": "1"})"},
      {"[]", R"("x")", R"({"experiment_id": "1"})"},
      {"[]", R"({"info": null})", R"({"experiment_id": "1"})"},
      {"[]", run, R"("x")"},
      {"[]", run, R"({"experiment_id": null})"},
  };
  for (const auto& answers : kAnswers) {
    MlflowServer server(answers.found, answers.created, answers.experiment);
    const absl::Status begun = MakeMlflowTarget(server.options())->Begin(RunOf("r", "l"), true).status();
    EXPECT_TRUE(absl::IsUnavailable(begun)) << begun << answers.found << answers.created << answers.experiment;
    EXPECT_THAT(begun.message(), HasSubstr("no answer of MLflow: "));
  }
}

TEST(MlflowTest, ErrorCodesMayBeOfAnyKind) {
  MlflowServer server("[]", FoundRun("{}"));
  server.batch_status = 400;
  server.batch_answer = R"({"error_code": 500, "message": "no"})";
  const std::unique_ptr<FollowTarget> target = MakeMlflowTarget(server.options());
  const std::unique_ptr<RunTracker> tracker = *target->Begin(RunOf("r", "l"), true);
  tracker->TakeRound(CommittedRound(1), {});
  EXPECT_TRUE(absl::IsUnavailable(tracker->Deliver()));
}

TEST(MlflowTest, StepsMayBeNumbersOrTextOfDigits) {
  const std::string metrics =
      R"({"metrics": [{"key": "bytes/up_wire", "step": "5"}, {"key": "bytes_total/up_wire", "step": 6}]})";
  MlflowServer server(absl::StrCat("[", FoundRun(metrics), "]"), "{}");
  const std::unique_ptr<FollowTarget> target = MakeMlflowTarget(server.options());
  const std::unique_ptr<RunTracker> tracker = *target->Begin(RunOf("r", "l"), false);
  for (uint64_t id = 1; id <= 7; ++id) tracker->TakeRound(CommittedRound(id), {});
  ASSERT_TRUE(tracker->Deliver().ok());
  std::map<std::string, std::vector<uint64_t>> steps;
  for (const nlohmann::json& batch : server.batches) {
    for (const nlohmann::json& metric : batch["metrics"]) steps[metric["key"]].push_back(metric["step"]);
  }
  EXPECT_THAT(steps["bytes/up_wire"], ElementsAre(6, 7));
  EXPECT_THAT(steps["bytes_total/up_wire"], ElementsAre(7));
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
        {absl::StrCat("http://127.0.0.1:", port_, "/hook"), "", directory_.path(), absl::Seconds(60), "here", nullptr});
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

// So many clients, each with all its phases.
v1::TracesReply TracesOf(int clients) {
  v1::TracesReply traces;
  traces.set_rounds_kept(8);
  traces.set_clients_total(clients);
  for (int i = 0; i < clients; ++i) {
    v1::ClientTrace* const client = traces.add_clients();
    client->set_client_name(absl::StrCat("client-", i));
    client->set_assigned_us(1'700'000'000'100'000);
    client->set_upload_began_us(1'700'000'000'500'000);
    client->set_received_us(1'700'000'000'600'000);
    client->set_verdict_us(1'700'000'000'900'000);
  }
  return traces;
}

// A collector that takes bodies of at most `most_bytes`, and its spans by trace.
class OtlpTrackerTest : public ::testing::Test {
 protected:
  static constexpr size_t kMostBytes = size_t{2} << 20;

  OtlpTrackerTest()
      : collector_([this](const httplib::Request& request, httplib::Response* response) {
          ++requests_;
          if (requests_ == fails_at_) {
            response->status = 503;
            return;
          }
          const nlohmann::json body = nlohmann::json::parse(request.body);
          const nlohmann::json& spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"];
          most_spans_ = std::max(most_spans_, spans.size());
          for (const nlohmann::json& span : spans) ++spans_[span["traceId"]][span["spanId"]];
        }) {
    collector_.LimitBodies(kMostBytes);
  }
  // As another process.
  void Begin() {
    target_ = MakeOtlpTarget({collector_.url(), {}, directory_.path(), 1000, nullptr});
    tracker_ = *target_->Begin(run_, true);
  }
  void TearDown() override {
    tracker_.reset();
    target_.reset();  // its connection keeps the server
  }

  const TempDirectory directory_;
  const v1::Status run_ = RunOf("r", std::string(16, '\xab'));
  int requests_ = 0;
  int fails_at_ = 0;  // the number of the request that is answered with 503
  size_t most_spans_ = 0;
  std::map<std::string, std::map<std::string, int>> spans_;  // how often a span came, by trace
  Receiver collector_;
  std::unique_ptr<FollowTarget> target_;
  std::unique_ptr<RunTracker> tracker_;
};

TEST_F(OtlpTrackerTest, ABacklogIsSentRoundByRound) {
  Begin();
  for (uint64_t id = 1; id <= 40; ++id) tracker_->TakeRound(CommittedRound(id), TracesOf(100));
  const absl::Status delivered = tracker_->Deliver();
  ASSERT_TRUE(delivered.ok()) << delivered;
  EXPECT_EQ(requests_, 40);
  ASSERT_EQ(spans_.size(), 40u);
  for (const auto& [trace, spans] : spans_) EXPECT_EQ(spans.size(), 2u + 100u * 5u) << trace;
  Begin();
  EXPECT_EQ(tracker_->RoundsAfter(), 40u);
}

TEST_F(OtlpTrackerTest, ARoundOfManyClientsIsCut) {
  Begin();
  tracker_->TakeRound(CommittedRound(1), TracesOf(1000));
  const absl::Status delivered = tracker_->Deliver();
  ASSERT_TRUE(delivered.ok()) << delivered;
  EXPECT_EQ(requests_, 3);
  EXPECT_EQ(most_spans_, 2000u);
  ASSERT_EQ(spans_.size(), 1u);
  EXPECT_EQ(spans_.begin()->second.size(), 2u + 1000u * 5u);
}

TEST_F(OtlpTrackerTest, GoesOnBehindWhatWasTaken) {
  Begin();
  for (uint64_t id = 1; id <= 3; ++id) tracker_->TakeRound(CommittedRound(id), TracesOf(1000));
  fails_at_ = 5;  // the second of the second round's three
  EXPECT_TRUE(absl::IsUnavailable(tracker_->Deliver()));
  EXPECT_EQ(PositionFile(directory_.path(), "otlp", collector_.url() + "/v1/traces", "abababababababababababababababab")
                .Read()
                ->at("round"),
            1);
  ASSERT_TRUE(tracker_->Deliver().ok());
  EXPECT_EQ(requests_, 10);
  EXPECT_EQ(spans_.size(), 3u);
  for (const auto& [trace, spans] : spans_) {
    EXPECT_EQ(spans.size(), 2u + 1000u * 5u) << trace;
    for (const auto& [id, times] : spans) ASSERT_EQ(times, 1) << id;
  }
  Begin();
  EXPECT_EQ(tracker_->RoundsAfter(), 3u);
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

TEST(TensorBoardTargetTest, ANameThatNoRunHasIsNoPath) {
  const TempDirectory directory;
  for (const char* name : {"", "..", "../out", "a/b", ".hidden"}) {
    const absl::Status followed = FollowInto(directory.path() + "/logs", RunOf(name, "l"), 1);
    EXPECT_TRUE(absl::IsDataLoss(followed)) << name << ": " << followed;
    EXPECT_THAT(followed.message(), HasSubstr("no run can have the name"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
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
