#include "learning/datasets/idx.h"

#include <zlib.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learning/datasets/mnist.h"
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

std::string Gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = bytes.size();
  stream.next_out = reinterpret_cast<Bytef*>(&out[0]);
  stream.avail_out = out.size();
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
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
  EXPECT_EQ(examples.rows, 3);
  EXPECT_EQ(examples.columns, 5);
  EXPECT_EQ(std::string(examples.images.begin(), examples.images.end()), images_.substr(16));
  EXPECT_EQ(std::string(examples.labels.begin(), examples.labels.end()), labels_.substr(8));
}

TEST_F(IdxTest, ReadsCompressedFiles) {
  const Examples examples = Read(Gzip(images_), Gzip(labels_)).value();
  EXPECT_EQ(std::string(examples.images.begin(), examples.images.end()), images_.substr(16));
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
              AllOf(HasSubstr("/images, offset 16: the header promises 180 bytes"), HasSubstr("fetch it again")));
  EXPECT_THAT(Refusal(images_.substr(0, 10), labels_), HasSubstr("offset 10: the file ends where 2 more bytes"));
}

TEST_F(IdxTest, RefusesTheWrongKindOfFile) {
  EXPECT_THAT(Refusal(labels_, labels_), HasSubstr("0x00000801 where an IDX file of images has 0x00000803"));
  EXPECT_THAT(Refusal(images_, images_), HasSubstr("0x00000803 where an IDX file of labels has 0x00000801"));
}

TEST_F(IdxTest, RefusesBytesLeftOver) {
  EXPECT_THAT(Refusal(images_ + "x", labels_), HasSubstr("offset 196: bytes follow the images"));
  EXPECT_THAT(Refusal(images_, Gzip(labels_ + "x")), HasSubstr("bytes follow the labels"));
}

TEST_F(IdxTest, RefusesAbsurdSizesBeforeAllocating) {
  EXPECT_THAT(Refusal(Images(0xffffffff, 1024, 1024, 99), labels_), HasSubstr("more than a file of 115 bytes"));
  EXPECT_THAT(Refusal(Images(12, 0xffffffff, 0xffffffff, 99), labels_), HasSubstr("out of range"));
  EXPECT_THAT(Refusal(Images(12, 0, 5, 0), labels_), HasSubstr("out of range"));
  EXPECT_THAT(Refusal(images_, Labels(0xffffffff, 12)), HasSubstr("the header promises 4294967295 bytes"));
  EXPECT_THAT(Refusal(Gzip(Images(0xffffffff, 1024, 1024, 99)), labels_), HasSubstr("more than a file of"));
}

TEST_F(IdxTest, RefusesCountsThatDiffer) {
  EXPECT_THAT(Refusal(images_, Labels(11, 11)), AllOf(HasSubstr("12 images"), HasSubstr("11 labels")));
}

TEST_F(IdxTest, RefusesLabelsThatAreNoClass) {
  std::string labels = labels_;
  labels[8 + 3] = 10;
  EXPECT_THAT(Refusal(images_, labels), HasSubstr("offset 11: label 10 is not in 0..9"));
}

TEST_F(IdxTest, MissingFileIsNotFound) {
  const std::string labels = folder_.Write("labels", labels_);
  EXPECT_EQ(ReadIdxExamples(folder_.path() + "/none", labels, 10).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadIdxExamples(folder_.path(), labels, 10).status().code(), absl::StatusCode::kNotFound);
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
