// Checkpoints of a followed run: when one is stored, which are kept, and how another process goes on.
#include "tersectl/follow/checkpoint_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/file_system.h"
#include "tersectl/admin_client.h"
#include "tersectl/objects/object_store.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A run of the fake coordinator, and checkpoints every ten versions, two of which are kept.
class CheckpointTargetTest : public ::testing::Test {
 protected:
  CheckpointTargetTest() {
    server_.safetensors = "the model's file";
    run_.set_run("r");
    run_.set_lineage(std::string(16, '\xab'));
    run_.set_parameters(4);
    server_.status = run_;
    Begin();
  }
  // As another process.
  void Begin() {
    CheckpointOptions options;
    options.every = 10;
    options.keep = 2;
    options.connect = [this](const std::string& run) {
      AdminClient::Peer peer;
      peer.address = server_.address();
      return AdminClient::Make(peer, absl::Seconds(10), run);
    };
    target_ = MakeCheckpointTarget(OpenObjectStore(directory_.path()).value(), options);
    tracker_ = target_->Begin(run_, false).value();
  }
  absl::Status Look(uint64_t version) {
    v1::Run run;
    run.set_version(version);
    server_.exported_version = version;
    tracker_->TakeRun(run, absl::UnixEpoch());
    return tracker_->Deliver();
  }
  std::vector<std::string> Stored() const {
    const auto names = PosixFiles().List(directory_.path() + "/r-abababab");
    return names.ok() ? *names : std::vector<std::string>();
  }

  FakeAdminServer server_;
  const TempDirectory directory_;
  v1::Status run_;
  std::unique_ptr<FollowTarget> target_;
  std::unique_ptr<RunTracker> tracker_;
};

TEST_F(CheckpointTargetTest, StoresEverySoManyVersionsAndKeepsTheNewest) {
  ASSERT_EQ(Look(9), absl::OkStatus());
  EXPECT_THAT(Stored(), IsEmpty());
  ASSERT_EQ(Look(12), absl::OkStatus());
  EXPECT_THAT(Stored(), ElementsAre("0000000012.safetensors"));
  EXPECT_EQ(Slurp(directory_.path() + "/r-abababab/0000000012.safetensors"), "the model's file");
  for (const uint64_t version : {21, 22, 31, 32}) ASSERT_EQ(Look(version), absl::OkStatus());
  EXPECT_THAT(Stored(), ElementsAre("0000000022.safetensors", "0000000032.safetensors"));
}

TEST_F(CheckpointTargetTest, StoresTheLastModelOfARunOnce) {
  ASSERT_EQ(Look(12), absl::OkStatus());
  tracker_->TakeEnd({"finished", "all rounds are done"});
  ASSERT_EQ(Look(13), absl::OkStatus());
  ASSERT_EQ(Look(13), absl::OkStatus());
  EXPECT_THAT(Stored(), ElementsAre("0000000012.safetensors", "0000000013.safetensors"));
}

TEST_F(CheckpointTargetTest, ADeletedRunHasNoModelLeft) {
  tracker_->TakeEnd({"deleted", "the coordinator has it no more"});
  server_.safetensors.clear();
  EXPECT_EQ(Look(5), absl::OkStatus());
  EXPECT_THAT(Stored(), IsEmpty());
}

// The run was deleted while its place was away, and made anew.
TEST_F(CheckpointTargetTest, AnotherRunOfTheNameIsNotStoredAsThisOne) {
  tracker_->TakeEnd({"finished", "all rounds are done"});
  server_.status.set_lineage(std::string(16, '\xcd'));
  EXPECT_EQ(Look(12), absl::OkStatus());
  EXPECT_THAT(Stored(), IsEmpty());
}

TEST_F(CheckpointTargetTest, AnotherProcessGoesOnAfterTheNewest) {
  ASSERT_EQ(Look(10), absl::OkStatus());
  ASSERT_EQ(Look(20), absl::OkStatus());
  ASSERT_TRUE(WriteFileSynced(PosixFiles(), directory_.path() + "/r-abababab/notes.txt", {"mine"}).ok());
  Begin();
  ASSERT_EQ(Look(29), absl::OkStatus());
  ASSERT_EQ(Look(30), absl::OkStatus());
  EXPECT_THAT(Stored(), ElementsAre("0000000020.safetensors", "0000000030.safetensors", "notes.txt"))
      << "files of other names are nobody's checkpoints";
}

TEST_F(CheckpointTargetTest, WithoutTheRightsItSaysSoAndTriesAgain) {
  server_.safetensors.clear();  // the fake coordinator then refuses
  EXPECT_FALSE(Look(10).ok());
  EXPECT_THAT(Stored(), IsEmpty());
  server_.safetensors = "the model's file";
  EXPECT_EQ(Look(10), absl::OkStatus());
  EXPECT_THAT(Stored(), ElementsAre("0000000010.safetensors"));
}

TEST_F(CheckpointTargetTest, AModelWithoutAVersionIsNotStored) {
  v1::Run run;
  run.set_version(10);
  server_.exported_version = 0;
  tracker_->TakeRun(run, absl::UnixEpoch());
  EXPECT_THAT(tracker_->Deliver().message(), HasSubstr("update it before"));
  EXPECT_THAT(Stored(), IsEmpty());
}

}  // namespace
}  // namespace terse
