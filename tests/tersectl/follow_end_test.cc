// How `tersectl follow` ends: runs that were deleted while nobody followed them, and requests under way when an error
// of one target ends the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/file_system.h"
#include "tersectl/exit_codes.h"
#include "tersectl/follow/checkpoint_target.h"
#include "tersectl/follow/follower.h"
#include "tersectl/follow/mlflow_target.h"
#include "tersectl/follow/stop_signal.h"
#include "tersectl/follow/webhook_target.h"
#include "tests/tersectl/http_receiver.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kLineage[] = "abababababababababababababababab";

v1::Status RunOfTheTest() {
  v1::Status run;
  run.set_run("r");
  run.set_lineage(std::string(16, '\xab'));
  return run;
}

// A run as MLflow has it.
std::string RunWith(const std::string& status, const std::string& tags) {
  return absl::StrCat(R"([{"info": {"run_id": "7", "status": ")", status,
                      R"("}, "data": {"metrics": [{"key": "x", "step": 3, "timestamp": 1500}], "tags": )", tags, "}}]");
}

class DeletedRunInMlflowTest : public ::testing::Test {
 protected:
  std::unique_ptr<FollowTarget> Target(const MlflowServer& server, const std::string& coordinator) const {
    MlflowOptions options = server.options();
    options.state = directory_.path();
    options.coordinator = coordinator;
    return MakeMlflowTarget(std::move(options));
  }
  std::vector<std::string> Notes() const { return *PosixFiles().List(directory_.path()); }

  const TempDirectory directory_;
};

TEST_F(DeletedRunInMlflowTest, EndsThere) {
  MlflowServer server(RunWith("RUNNING", "[]"), "{}");
  ASSERT_TRUE(Target(server, "here")->Begin(RunOfTheTest(), false).ok());
  EXPECT_THAT(Notes(), ElementsAre(HasSubstr(kLineage)));
  const std::unique_ptr<FollowTarget> target = Target(server, "here");
  EXPECT_THAT(*target->FindEarlier({kLineage}), IsEmpty()) << "the coordinator has it";
  EXPECT_THAT(*Target(server, "elsewhere")->FindEarlier({}), IsEmpty()) << "it is another coordinator's";
  std::vector<EarlierRun> earlier = *target->FindEarlier({});
  ASSERT_EQ(earlier.size(), 1u);
  EXPECT_EQ(earlier[0].name, "r");
  EXPECT_EQ(earlier[0].lineage, kLineage);
  earlier[0].tracker->TakeEnd({"deleted", "gone"});
  EXPECT_THAT(server.changed, IsEmpty());
  ASSERT_TRUE(earlier[0].tracker->Deliver().ok());
  EXPECT_THAT(server.changed, ElementsAre(R"(runs/set-tag {"key":"terse.end","value":"deleted: gone","run_id":"7"})",
                                          R"(runs/update {"run_id":"7","status":"KILLED","end_time":1500})"));
  EXPECT_THAT(Notes(), IsEmpty());
}

TEST_F(DeletedRunInMlflowTest, ThatSomebodyEndedThereIsLeftAlone) {
  MlflowServer server(RunWith("RUNNING", "[]"), "{}");
  ASSERT_TRUE(Target(server, "here")->Begin(RunOfTheTest(), false).ok());
  server.found = RunWith("FINISHED", "[]");
  EXPECT_THAT(*Target(server, "here")->FindEarlier({}), IsEmpty());
  EXPECT_THAT(server.changed, IsEmpty());
  EXPECT_THAT(Notes(), IsEmpty());
}

TEST_F(DeletedRunInMlflowTest, GoesOnWhenTheCoordinatorHasItAllTheSame) {
  MlflowServer server(RunWith("KILLED", R"([{"key": "terse.end", "value": "deleted: gone"}])"), "{}");
  const std::unique_ptr<FollowTarget> target = Target(server, "here");
  const std::unique_ptr<RunTracker> tracker = *target->Begin(RunOfTheTest(), false);
  EXPECT_FALSE(tracker->IsComplete());
  tracker->TakeRun(v1::Run(), absl::Now());
  ASSERT_TRUE(tracker->Deliver().ok());
  ASSERT_GE(server.changed.size(), 2u);
  EXPECT_EQ(server.changed[server.changed.size() - 2], R"(runs/delete-tag {"run_id":"7","key":"terse.end"})");
  EXPECT_EQ(server.changed.back(), R"(runs/update {"run_id":"7","status":"RUNNING"})");
}

TEST_F(DeletedRunInMlflowTest, ARunThatWasStoppedIsOver) {
  MlflowServer server(RunWith("KILLED", R"([{"key": "terse.end", "value": "stopped: by ada"}])"), "{}");
  const std::unique_ptr<FollowTarget> target = Target(server, "here");
  EXPECT_TRUE((*target->Begin(RunOfTheTest(), false))->IsComplete());
  EXPECT_THAT(Notes(), IsEmpty());
}

TEST(DeletedRunAtAWebhookTest, IsToldOfOnce) {
  const TempDirectory directory;
  std::vector<std::string> events;
  Receiver receiver([&](const httplib::Request& request, httplib::Response*) {
    events.push_back(nlohmann::json::parse(request.body)["event"]);
  });
  const auto target = [&](const std::string& coordinator) {
    return MakeWebhookTarget({receiver.url(), "", directory.path(), absl::Seconds(60), coordinator, nullptr});
  };
  {
    const std::unique_ptr<FollowTarget> first = target("here");
    ASSERT_TRUE((*first->Begin(RunOfTheTest(), true))->Deliver().ok());
  }
  EXPECT_THAT(*target("elsewhere")->FindEarlier({}), IsEmpty());
  {
    const std::unique_ptr<FollowTarget> second = target("here");
    EXPECT_THAT(*second->FindEarlier({kLineage}), IsEmpty());
    std::vector<EarlierRun> earlier = *second->FindEarlier({});
    ASSERT_EQ(earlier.size(), 1u);
    EXPECT_EQ(earlier[0].name, "r");
    earlier[0].tracker->TakeEnd({"deleted", "gone"});
    ASSERT_TRUE(earlier[0].tracker->Deliver().ok());
  }
  EXPECT_THAT(events, ElementsAre("run_deleted"));
  EXPECT_THAT(*target("here")->FindEarlier({}), IsEmpty());
  EXPECT_THAT(*PosixFiles().List(directory.path()), IsEmpty());
}

// Knows a run of an earlier process, once it answers.
class EarlierTarget : public FollowTarget {
 public:
  std::string name() const override { return "the test"; }
  absl::StatusOr<std::unique_ptr<RunTracker>> Begin(const v1::Status&, bool) override {
    return absl::InternalError("there is no run");
  }
  absl::StatusOr<std::vector<EarlierRun>> FindEarlier(const std::set<std::string>&) override {
    class Tracker : public RunTracker {
     public:
      explicit Tracker(std::string* end) : end_(end) {}
      void TakeEnd(const RunEnd& end) override { *end_ = end.state; }
      absl::Status Deliver() override { return absl::OkStatus(); }

     private:
      std::string* const end_;
    };
    std::vector<EarlierRun> earlier;
    for (const char* run : {"r", "other"}) earlier.push_back({run, kLineage, std::make_unique<Tracker>(&ends[run])});
    return earlier;
  }

  std::map<std::string, std::string> ends;
};

TEST(FollowerTest, EndsTheOneRunThatWasDeletedMeanwhile) {
  FakeAdminServer server;
  AdminClient client = *AdminClient::Make({server.address(), {}}, absl::Seconds(5));
  EarlierTarget target;
  std::vector<std::string> remarks;
  const absl::Notification stop;
  Follower follower(
      &client, "r", &target, [&](const std::string& line) { remarks.push_back(line); }, &stop);
  const absl::Status followed = follower.Follow(absl::Minutes(1), [] {});
  EXPECT_TRUE(followed.ok()) << followed;
  EXPECT_THAT(remarks, ElementsAre("the test: the coordinator no longer has run 'r'"));
  EXPECT_EQ(target.ends["r"], "deleted");
  EXPECT_EQ(target.ends["other"], "");
}

TEST(StopTest, GivesUpRequestsThatAreUnderWay) {
  absl::Notification over;
  Receiver silent([&](const httplib::Request&, httplib::Response*) { over.WaitForNotification(); });
  FakeAdminServer server;
  server.runs.emplace_back().set_name("r");
  server.runs.back().set_state("active");
  server.status.set_run("r");
  // The coordinator is too old for the lines of JSON, whose error ends the command.
  const absl::Time begin = absl::Now();
  const CtlOutcome outcome = Invoke({"follow", "--admin", server.address(), "--mlflow", silent.url(), "--json"});
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  over.Notify();
  EXPECT_EQ(outcome.code, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("of an earlier release"));
  EXPECT_THAT(outcome.err, ::testing::Not(HasSubstr("given up")));
}

TEST(StopTest, CancelsCallsOfTheCoordinator) {
  const TempDirectory directory;
  FakeAdminServer server;
  server.status = RunOfTheTest();
  server.export_hangs = true;
  StopSignal stop;
  CheckpointOptions options;
  options.every = 1;
  options.stop = &stop;
  options.connect = [&](const std::string& run) {
    return AdminClient::Make({server.address(), {}}, absl::Seconds(10), run);
  };
  const std::unique_ptr<FollowTarget> target =
      MakeCheckpointTarget(OpenObjectStore(directory.path()).value(), std::move(options));
  const std::unique_ptr<RunTracker> tracker = *target->Begin(RunOfTheTest(), false);
  v1::Run run;
  run.set_version(5);
  tracker->TakeRun(run, absl::Now());
  std::thread stopper([&] {
    absl::SleepFor(absl::Milliseconds(200));
    stop.Set();
  });
  const absl::Time begin = absl::Now();
  const absl::Status delivered = tracker->Deliver();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  EXPECT_TRUE(absl::IsCancelled(delivered)) << delivered;
  stopper.join();
}

}  // namespace
}  // namespace terse
