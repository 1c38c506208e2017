#include "learning/datasets/cifar.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/learning/contents.h"
#include "tests/learning/dataset_fixture.h"
#include "tests/learning/gzip.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

// A record whose red, green and blue planes hold one value each.
std::string Record(char label, char red, char green, char blue) {
  return absl::StrCat(std::string(1, label), std::string(1024, red), std::string(1024, green), std::string(1024, blue));
}

class CifarTest : public DatasetFixture {
 protected:
  CifarTest() : DatasetFixture("cifar") { spec_.train = "train"; }
};

TEST_F(CifarTest, ReadsRecords) {
  folder_.Write("train", Record(7, 1, 2, 3) + Record(0, 4, 5, 6));
  const Dataset dataset = Load().value();
  EXPECT_EQ(dataset.train.features.shape(), (std::vector<int64_t>{3, 32, 32}));
  EXPECT_EQ(Numbers(dataset.train.targets), (std::vector<double>{7, 0}));
  EXPECT_EQ(Contents(dataset.train.features.Slice(1, 1)), Record(0, 4, 5, 6).substr(1));
  EXPECT_EQ(dataset.classes, 8);
  EXPECT_TRUE(dataset.file_starts.empty());
}

TEST_F(CifarTest, AFolderIsItsFilesInOrder) {
  folder_.Write("train/b.bin", Record(1, 0, 0, 0));
  folder_.Write("train/a.bin.gz", Gzip(Record(2, 0, 0, 0) + Record(3, 0, 0, 0)));
  folder_.Write("train/notes.txt", "no records");
  const Dataset dataset = Load().value();
  EXPECT_EQ(Numbers(dataset.train.targets), (std::vector<double>{2, 3, 1}));
  EXPECT_EQ(dataset.file_starts, (std::vector<int64_t>{0, 2}));
}

TEST_F(CifarTest, RefusesPartsOfRecords) {
  for (const int size : {0, 1, 3072, 3074, 6145}) {
    folder_.Write("train", std::string(size, '\0'));
    EXPECT_THAT(Refusal(), HasSubstr(absl::StrCat("offset ", size / 3073 * 3073, ": the file has ", size, " bytes")));
  }
}

class Cifar10Test : public DatasetFixture {
 protected:
  Cifar10Test() : DatasetFixture("cifar10") {}
  void WriteAll(const std::string& folder, char label) {
    for (int i = 1; i <= 5; ++i) {
      folder_.Write(absl::StrCat(folder, "data_batch_", i, ".bin"), Record(i, i, i, i) + Record(label, 0, 0, 0));
    }
    folder_.Write(folder + "test_batch.bin", Record(9, 0, 0, 0));
  }
};

TEST_F(Cifar10Test, LooksInThreeFolders) {
  for (const std::string folder : {"cifar-10-batches-bin/", "cifar10/", ""}) {
    EXPECT_EQ(Load().ok(), folder != "cifar-10-batches-bin/");
    std::filesystem::remove_all(folder_.path() + "/cifar-10-batches-bin");
    WriteAll(folder, 0);
    const Dataset dataset = Load().value();
    EXPECT_EQ(Numbers(dataset.train.targets), (std::vector<double>{1, 0, 2, 0, 3, 0, 4, 0, 5, 0}));
    EXPECT_EQ(dataset.file_starts, (std::vector<int64_t>{0, 2, 4, 6, 8}));
    EXPECT_EQ(dataset.test_count(), 1);
    EXPECT_EQ(dataset.classes, 10);
  }
}

TEST_F(Cifar10Test, NamesTheMissingFile) {
  WriteAll("", 0);
  std::filesystem::remove(folder_.path() + "/data_batch_4.bin");
  const absl::Status status = Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no data_batch_4.bin or data_batch_4.bin.gz"));
}

TEST_F(Cifar10Test, RefusesLabelsThatAreNoClass) {
  WriteAll("", 10);
  EXPECT_THAT(Refusal(), HasSubstr("data_batch_1.bin, offset 3073: label 10 is not in 0..9"));
}

}  // namespace
}  // namespace terse
