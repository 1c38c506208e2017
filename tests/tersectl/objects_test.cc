// Stored files: what comes back, what is refused, and what is left after a failure; in a folder and in a bucket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "security/file_hash.h"
#include "tersectl/objects/object_store.h"
#include "tests/tersectl/fake_bucket.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ManyBytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 2'654'435'761u >> 13);
  return bytes;
}

std::vector<std::string> NamesOf(const std::vector<ObjectInfo>& objects) {
  std::vector<std::string> names;
  for (const ObjectInfo& object : objects) names.push_back(object.name);
  return names;
}

// With the parameter true in a bucket, otherwise in a folder.
class AnyStore : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) bucket_ = std::make_unique<FakeBucket>();
    store_ = OpenObjectStore(GetParam() ? "s3://models/a/b" : directory_.path() + "/place").value();
  }
  std::string Fetched(const std::string& name) {
    const std::string path = directory_.path() + "/fetched";
    EXPECT_EQ(store_->Get(name, path), absl::OkStatus());
    return PosixFiles().Read(path).value();
  }

  size_t OpenUploads() { return bucket_ == nullptr ? 0 : bucket_->open_uploads(); }

  const TempDirectory directory_;
  std::unique_ptr<FakeBucket> bucket_;
  std::unique_ptr<ObjectStore> store_;
};

INSTANTIATE_TEST_SUITE_P(FolderAndBucket, AnyStore, ::testing::Bool());

TEST_P(AnyStore, GivesBackWhatItWasGiven) {
  const std::string large = ManyBytes(2 * kObjectPartBytes + 5);
  for (const std::string& bytes : {std::string(), std::string("a"), large}) {
    ASSERT_EQ(PutBytes(*store_, "run/a file+.bin", bytes), absl::OkStatus());
    EXPECT_EQ(Fetched("run/a file+.bin"), bytes) << bytes.size();
  }
  EXPECT_EQ(OpenUploads(), 0);
}

TEST_P(AnyStore, ListsAFolderWithoutThoseBelow) {
  EXPECT_THAT(store_->List("run").value(), ::testing::IsEmpty());
  for (const char* name : {"run/3", "run/1", "run/2", "run/below/4", "other/5"}) {
    ASSERT_EQ(PutBytes(*store_, name, "12"), absl::OkStatus());
  }
  EXPECT_THAT(NamesOf(store_->List("run").value()), ElementsAre("run/1", "run/2", "run/3"));
  EXPECT_EQ(store_->List("run")->at(0).bytes, 2);
}

TEST_P(AnyStore, RemovesAndMisses) {
  ASSERT_EQ(PutBytes(*store_, "run/1", "12"), absl::OkStatus());
  EXPECT_EQ(store_->Remove("run/1"), absl::OkStatus());
  EXPECT_EQ(store_->Remove("run/1"), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(store_->Get("run/1", directory_.path() + "/fetched")));
}

TEST_P(AnyStore, RefusesNamesThatLeadElsewhere) {
  for (const char* name : {"", "/etc/passwd", "../up", "run/../../up", "run//1", "run/", "."}) {
    EXPECT_TRUE(absl::IsInvalidArgument(PutBytes(*store_, name, "1"))) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(store_->Get(name, directory_.path() + "/fetched"))) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(store_->Remove(name))) << name;
  }
}

// The source fails in the second part: what was there stays, and nothing else is.
TEST_P(AnyStore, AFailedPutLeavesWhatWasThere) {
  ASSERT_EQ(PutBytes(*store_, "run/1", "before"), absl::OkStatus());
  const absl::Status status =
      store_->Put("run/1", 3 * kObjectPartBytes, [](int64_t offset, int64_t bytes) -> absl::StatusOr<std::string> {
        if (offset > 0) return absl::DataLossError("the source broke");
        return std::string(bytes, 'x');
      });
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(Fetched("run/1"), "before");
  EXPECT_EQ(store_->List("run")->size(), 1);
  EXPECT_EQ(OpenUploads(), 0);
}

TEST(Bucket, TroubleThatPassesIsWaitedOut) {
  FakeBucket bucket;
  const auto store = OpenObjectStore("s3://models/a").value();
  bucket.Fail("PUT", 2, 503, "SlowDown");
  EXPECT_EQ(PutBytes(*store, "run/1", "12"), absl::OkStatus());
  EXPECT_EQ(bucket.objects().at("a/run/1"), "12");
}

TEST(Bucket, AnUploadInPartsEndsOnceWhateverTheAnswer) {
  FakeBucket bucket;
  const auto store = OpenObjectStore("s3://models/a").value();
  const std::string large = ManyBytes(kObjectPartBytes + 1);
  bucket.FailLate(1);
  EXPECT_EQ(PutBytes(*store, "run/1", large), absl::OkStatus()) << "a failure with status 200 is tried again";
  EXPECT_TRUE(bucket.objects().at("a/run/1") == large);
  bucket.LoseAnswers(1);
  EXPECT_EQ(PutBytes(*store, "run/2", large), absl::OkStatus()) << "the upload is over when it is asked for again";
  EXPECT_TRUE(bucket.objects().at("a/run/2") == large);
  EXPECT_EQ(bucket.open_uploads(), 0);
}

TEST(Bucket, ARefusalSaysWhatS3SaysAndWhatToCheck) {
  FakeBucket bucket;
  const auto store = OpenObjectStore("s3://models/a").value();
  bucket.Fail("PUT", 100, 403, "SignatureDoesNotMatch");
  const absl::Status status = PutBytes(*store, "run/1", "12");
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(status.message(), HasSubstr("s3://models/a/run/1: HTTP 403 SignatureDoesNotMatch so it is"));
  EXPECT_THAT(status.message(), HasSubstr("AWS_SECRET_ACCESS_KEY"));
}

TEST(Bucket, AFileThatIsReplacedWhileItIsReadIsNotMixed) {
  FakeBucket bucket;
  const auto store = OpenObjectStore("s3://models/a").value();
  const TempDirectory directory;
  bucket.Set("a/run/1", ManyBytes(2 * kObjectPartBytes));
  bucket.Fail("GET", 100, 412, "PreconditionFailed");
  EXPECT_TRUE(absl::IsFailedPrecondition(store->Get("run/1", directory.path() + "/fetched")));
}

TEST(Bucket, AnAnswerThatIsNoXmlIsNoCrash) {
  FakeBucket bucket;
  const auto store = OpenObjectStore("s3://models/a").value();
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  bucket.Fail("GET", 100, 400, deep);
  EXPECT_FALSE(store->List("run").ok());
}

TEST(Bucket, AddressesAndKeysAreChecked) {
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenObjectStore("s3://models/a").status()));
  FakeBucket bucket;
  EXPECT_THAT(OpenObjectStore("s3://Not_A_Bucket/a").status().message(), HasSubstr("names no bucket"));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenObjectStore("s3://").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenObjectStore("s3://models/a/../b").status()));
  EXPECT_TRUE(OpenObjectStore("s3://models").ok());
  setenv("AWS_ENDPOINT_URL_S3", "ftp://models", 1);
  EXPECT_TRUE(absl::IsInvalidArgument(OpenObjectStore("s3://models").status()));
}

TEST(FileHash, IsThatOfOtherPrograms) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/file";
  ASSERT_EQ(WriteFileSynced(PosixFiles(), path, {"abc"}), absl::OkStatus());
  EXPECT_EQ(Sha256OfFile(path).value(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(absl::IsNotFound(Sha256OfFile(directory.path() + "/none").status()));
}

}  // namespace
}  // namespace terse
