#include "learning/datasets/idx.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learning/datasets/dataset_table.h"
#include "learning/datasets/mnist.h"
#include "tests/learning/contents.h"
#include "tests/learning/gzip.h"
#include "tests/learning/temp_folder.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string BigEndian(uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

std::string Images(uint32_t count, uint32_t rows, uint32_t columns, size_t body) {
  std::string bytes = absl::StrCat(BigEndian(0x803), BigEndian(count), BigEndian(rows), BigEndian(columns));
  for (size_t i = 0; i < body; ++i) bytes += static_cast<char>(i * 7);
  return bytes;
}

std::string Labels(uint32_t count, size_t body) {
  std::string bytes = absl::StrCat(BigEndian(0x801), BigEndian(count));
  for (size_t i = 0; i < body; ++i) bytes += static_cast<char>(i % 10);
  return bytes;
}

class IdxTest : public ::testing::Test {
 protected:
  absl::StatusOr<Examples> Read(const std::string& images, const std::string& labels) {
    return ReadIdxExamples(folder_.Write("images", images), folder_.Write("labels", labels), 10);
  }
  // The message of a refusal; fails the test unless it is INVALID_ARGUMENT.
  std::string Refusal(const std::string& images, const std::string& labels) {
    const absl::Status status = Read(images, labels).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }
  const std::string images_ = Images(12, 3, 5, 180);
  const std::string labels_ = Labels(12, 12);
  TempFolder folder_;
};

TEST_F(IdxTest, ReadsPlainFiles) {
  const Examples examples = Read(images_, labels_).value();
  EXPECT_EQ(examples.count(), 12);
  EXPECT_EQ(examples.features.shape(), (std::vector<int64_t>{1, 3, 5}));
  EXPECT_EQ(Contents(examples.features), images_.substr(16));
  EXPECT_EQ(Contents(examples.targets), labels_.substr(8));
}

TEST_F(IdxTest, ReadsCompressedFiles) {
  const Examples examples = Read(Gzip(images_), Gzip(labels_)).value();
  EXPECT_EQ(Contents(examples.features), images_.substr(16));
  EXPECT_EQ(examples.count(), 12);
}

TEST_F(IdxTest, RefusesEveryTruncation) {
  for (size_t length = 0; length < images_.size(); ++length) Refusal(images_.substr(0, length), labels_);
  for (size_t length = 0; length < labels_.size(); ++length) Refusal(images_, labels_.substr(0, length));
}

TEST_F(IdxTest, RefusesEveryTruncationOfACompressedFile) {
  const std::string images = Gzip(images_), labels = Gzip(labels_);
  for (size_t length = 0; length < images.size(); ++length) Refusal(images.substr(0, length), labels_);
  for (size_t length = 0; length < labels.size(); ++length) Refusal(images_, labels.substr(0, length));
}

TEST_F(IdxTest, RefusesDamagedCompression) {
  std::string images = Gzip(images_);
  images[images.size() - 6] ^= 1;  // in the checksum
  EXPECT_THAT(Refusal(images, labels_), HasSubstr("cannot be decompressed"));
}

TEST_F(IdxTest, NamesFileOffsetReasonAndRemedy) {
  EXPECT_THAT(Refusal(images_.substr(0, 100), labels_),
              AllOf(HasSubstr("/images, offset 16: the header promises 180 values, more than the 84 bytes"),
                    HasSubstr("fetch it again")));
  EXPECT_THAT(Refusal(images_.substr(0, 10), labels_), HasSubstr("offset 8: the file ends where 2 more bytes"));
}

TEST_F(IdxTest, RefusesTheWrongKindOfFile) {
  EXPECT_THAT(Refusal(labels_, labels_), HasSubstr("has 1 dimensions and can hold no images"));
  EXPECT_THAT(Refusal(images_, images_), HasSubstr("has 3 dimensions and can hold no labels"));
  EXPECT_THAT(Refusal(BigEndian(0x0d03) + images_.substr(4), labels_),
              HasSubstr("offset 0: the magic number is 0x00000d03"));
  EXPECT_THAT(Refusal(BigEndian(0x0800) + images_.substr(4), labels_), HasSubstr("0x00000800 where"));
  EXPECT_THAT(Refusal(BigEndian(0x0805) + images_.substr(4), labels_), HasSubstr("0x00000805 where"));
}

TEST_F(IdxTest, RefusesBytesLeftOver) {
  EXPECT_THAT(Refusal(images_ + "x", labels_), HasSubstr("offset 196: bytes follow the values"));
  EXPECT_THAT(Refusal(images_, Gzip(labels_ + "x")), HasSubstr("offset 20: bytes follow the values"));
}

TEST_F(IdxTest, RefusesAbsurdSizesBeforeAllocating) {
  EXPECT_THAT(Refusal(Images(0xffffffff, 1024, 1024, 99), labels_), HasSubstr("more than the 99 bytes that are left"));
  EXPECT_THAT(Refusal(Images(12, 0xffffffff, 0xffffffff, 99), labels_), HasSubstr("out of range"));
  EXPECT_THAT(Refusal(Images(12, 0, 5, 0), labels_), HasSubstr("out of range"));
  EXPECT_THAT(Refusal(images_, Labels(0xffffffff, 12)), HasSubstr("the header promises 4294967295 values"));
  EXPECT_THAT(Refusal(Gzip(Images(0xffffffff, 1024, 1024, 99)), labels_), HasSubstr("more than the 99 bytes"));
}

TEST_F(IdxTest, RefusesCountsThatDiffer) {
  EXPECT_THAT(Refusal(images_, Labels(11, 11)), AllOf(HasSubstr("12 examples"), HasSubstr("11 targets")));
}

TEST_F(IdxTest, RefusesLabelsThatAreNoClass) {
  std::string labels = labels_;
  labels[8 + 3] = 10;
  EXPECT_THAT(Refusal(images_, labels), HasSubstr("offset 11: label 10 is not in 0..9"));
}

TEST_F(IdxTest, HasOneToFourDimensions) {
  const auto header = [](const std::vector<uint32_t>& sizes) {
    std::string bytes = BigEndian(0x800 + sizes.size());
    for (const uint32_t size : sizes) bytes += BigEndian(size);
    return bytes;
  };
  const std::vector<std::vector<uint32_t>> shapes = {{6}, {3, 2}, {1, 3, 2}, {2, 1, 3, 1}};
  for (const std::vector<uint32_t>& sizes : shapes) {
    const Column column = ReadIdx(folder_.Write("values", header(sizes) + "abcdef")).value();
    EXPECT_EQ(column.count(), sizes[0]);
    EXPECT_EQ(column.shape(), std::vector<int64_t>(sizes.begin() + 1, sizes.end()));
    EXPECT_EQ(Contents(column), "abcdef");
  }
  EXPECT_EQ(Read(header({6, 2, 1, 2}) + std::string(24, 'x'), Labels(6, 6)).value().features.shape(),
            (std::vector<int64_t>{2, 1, 2}));
}

TEST_F(IdxTest, MissingFileIsNotFound) {
  const std::string labels = folder_.Write("labels", labels_);
  EXPECT_EQ(ReadIdxExamples(folder_.path() + "/none", labels, 10).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadIdxExamples(folder_.path(), labels, 10).status().code(), absl::StatusCode::kNotFound);
}

TEST(LoadIdxTest, FindsLabelsBesideTheImages) {
  const TempFolder folder;
  folder.Write("letters/train-images-idx3-ubyte.gz", Gzip(Images(12, 3, 5, 180)));
  folder.Write("letters/train-labels-idx1-ubyte", Labels(12, 12));
  DataSpec spec;
  spec.name = "idx";
  spec.train = "letters/train-images-idx3-ubyte";
  spec.test = "letters/test-images-idx3-ubyte";
  const Dataset dataset = LoadDataset(spec, folder.path()).value();
  EXPECT_EQ(dataset.task, Task::kClasses);
  EXPECT_EQ(dataset.classes, 10);
  EXPECT_EQ(dataset.train.features.shape(), (std::vector<int64_t>{1, 3, 5}));
  EXPECT_EQ(dataset.train_count(), 12);
  EXPECT_EQ(dataset.test_count(), 0);
  std::filesystem::remove(folder.path() + "/letters/train-labels-idx1-ubyte");
  EXPECT_EQ(LoadDataset(spec, folder.path()).status().code(), absl::StatusCode::kNotFound);
}

class MnistFilesTest : public ::testing::Test {
 protected:
  void WriteAll(const std::string& prefix, const std::string& ending, int side) {
    for (const std::string part : {"train", "t10k"}) {
      std::string images = Images(12, side, side, 12 * side * side), labels = labels_;
      if (ending == ".gz") images = Gzip(images), labels = Gzip(labels);
      folder_.Write(absl::StrCat(prefix, part, "-images-idx3-ubyte", ending), images);
      folder_.Write(absl::StrCat(prefix, part, "-labels-idx1-ubyte", ending), labels);
    }
  }
  const std::string labels_ = Labels(12, 12);
  TempFolder folder_;
};

TEST_F(MnistFilesTest, FindsPlainFiles) {
  WriteAll("", "", 28);
  EXPECT_EQ(LoadMnist(folder_.path()).value().train.count(), 12);
}

TEST_F(MnistFilesTest, FindsCompressedFilesInTheSubfolder) {
  WriteAll("mnist/", ".gz", 28);
  EXPECT_EQ(LoadMnist(folder_.path()).value().test.count(), 12);
}

TEST_F(MnistFilesTest, RefusesOtherImageSizes) {
  WriteAll("", "", 27);
  EXPECT_EQ(LoadMnist(folder_.path()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(MnistFilesTest, NamesTheMissingFile) {
  WriteAll("", "", 28);
  std::filesystem::remove(folder_.path() + "/t10k-labels-idx1-ubyte");
  const absl::Status status = LoadMnist(folder_.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("t10k-labels-idx1-ubyte"));
}

}  // namespace
}  // namespace terse
