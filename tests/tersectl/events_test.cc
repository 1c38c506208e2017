// `tersectl events --follow`, against a coordinator on a loopback port that breaks off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tersectl/cli.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FollowTest : public ::testing::Test {
 protected:
  FollowTest() {
    server_.status.set_state("active");
    server_.status.set_phase("suspended: the disk is full");
    server_.events = Events(1, 3);
  }
  static std::vector<v1::Event> Events(uint64_t first, uint64_t last) {
    std::vector<v1::Event> events;
    for (uint64_t id = first; id <= last; ++id) {
      v1::Event event;
      event.set_id(id);
      event.set_time_us(1'700'000'000'000'000);
      event.set_kind(absl::StrCat("kind", id));
      event.set_client(id == 4 ? 7 : -1);
      if (id == 4) event.set_client_name("berlin-1");
      event.set_detail("what happened");
      events.push_back(event);
    }
    return events;
  }
  CtlOutcome Follow(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "events");
    return InvokeAt(server_.address(), std::move(arguments));
  }
  // The ids in lines of JSON.
  static std::vector<uint64_t> Ids(const CtlOutcome& followed) {
    std::vector<uint64_t> ids;
    for (const auto line : absl::StrSplit(followed.out, '\n', absl::SkipEmpty())) {
      ids.push_back(json::parse(line.begin(), line.end())["id"].get<uint64_t>());
    }
    return ids;
  }

  FakeAdminServer server_;
};

TEST_F(FollowTest, PrintsTheNewestAndThenWhatComesUntilTheRunEnds) {
  server_.SetFollowed({grpc::Status::OK, grpc::Status::OK}, Events(1, 5));
  const CtlOutcome followed = Follow({"-f", "--newest", "2", "--json"});
  EXPECT_EQ(followed.code, kExitOk) << followed.err;
  EXPECT_THAT(Ids(followed), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(followed.err, IsEmpty());
}

TEST_F(FollowTest, HasATableForPeople) {
  server_.SetFollowed({grpc::Status::OK}, Events(4, 4));
  const CtlOutcome followed = Follow({"--follow", "--newest", "1"});
  const std::vector<std::string> lines = absl::StrSplit(followed.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u) << followed.out;
  EXPECT_EQ(lines[0].find("detail"), lines[2].find("what happened")) << followed.out;
  EXPECT_EQ(lines[0].find("kind"), lines[1].find("kind3")) << followed.out;
  EXPECT_EQ(lines[0].find("client"), lines[2].find("berlin-1")) << followed.out;
}

TEST_F(FollowTest, OfAnEndedRunPrintsWhatThereIs) {
  server_.status.set_state("stopped");
  server_.SetFollowed({grpc::Status(grpc::StatusCode::INTERNAL, "nobody was to ask again")}, {});
  const CtlOutcome followed = Follow({"-f", "--json"});
  EXPECT_EQ(followed.code, kExitOk) << followed.err;
  EXPECT_THAT(Ids(followed), ElementsAre(1, 2, 3));
}

TEST_F(FollowTest, GoesOnAfterTheCoordinatorWasAway) {
  const grpc::Status away(grpc::StatusCode::UNAVAILABLE, "broken by the test");
  server_.SetFollowed({away, grpc::Status::OK, away, grpc::Status::OK}, Events(1, 5));
  const CtlOutcome followed = Follow({"-f", "--json"});
  EXPECT_EQ(followed.code, kExitOk) << followed.err;
  EXPECT_THAT(Ids(followed), ElementsAre(1, 2, 3, 4, 5)) << "each once";
  EXPECT_THAT(followed.err, HasSubstr("calling again"));
}

TEST_F(FollowTest, LosesPatienceWithACoordinatorThatStaysAway) {
  const grpc::Status away(grpc::StatusCode::UNAVAILABLE, "broken by the test");
  server_.SetFollowed({away, away, away, away, away, away}, {});
  EXPECT_EQ(Follow({"-f", "--patience", "0.6"}).code, kExitUnreachable);
}

TEST_F(FollowTest, WaitsForARunWhoseDiskIsFull) {
  const grpc::Status closed(grpc::StatusCode::FAILED_PRECONDITION, "run 'r' is suspended: the disk is full");
  server_.SetFollowed({closed, closed, grpc::Status::OK}, Events(1, 4));
  const CtlOutcome followed = Follow({"-f", "--json", "--patience", "0"});
  EXPECT_EQ(followed.code, kExitOk) << followed.err;
  EXPECT_THAT(Ids(followed), ElementsAre(1, 2, 3, 4));

  server_.status.set_phase("down: the database is damaged");
  server_.SetFollowed({closed, grpc::Status::OK}, Events(1, 4));
  EXPECT_EQ(Follow({"-f"}).code, kExitFailed) << "nothing comes from a run that is down";
}

TEST_F(FollowTest, EndsWhenABackupReplacedTheRun) {
  server_.SetFollowed({grpc::Status(grpc::StatusCode::OUT_OF_RANGE, "the run has no event 3")}, {});
  const CtlOutcome followed = Follow({"-f"});
  EXPECT_EQ(followed.code, kExitFailed);
  EXPECT_THAT(followed.err, HasSubstr("the run has no event 3"));
}

TEST_F(FollowTest, FetchesMoreThanAReplyHolds) {
  server_.SetFollowed({grpc::Status::OK}, Events(1, 2503));  // the run ended before the first of three calls
  EXPECT_EQ(Ids(Follow({"-f", "--json"})).size(), 2503u);
}

}  // namespace
}  // namespace terse
