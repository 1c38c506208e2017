#include "learning/datasets/image_folder.h"

#include <png.h>
#include <turbojpeg.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "learning/datasets/image_decode.h"
#include "tests/learning/contents.h"
#include "tests/learning/dataset_fixture.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Png(uint32_t format, uint32_t width, uint32_t height, const std::vector<uint8_t>& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.format = format;
  image.width = width;
  image.height = height;
  size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  std::string bytes(size, '\0');
  EXPECT_NE(png_image_write_to_memory(&image, &bytes[0], &size, 0, pixels.data(), 0, nullptr), 0) << image.message;
  bytes.resize(size);
  return bytes;
}

std::string Jpeg(TJPF format, TJSAMP sampling, int width, int height, const std::vector<uint8_t>& pixels) {
  const tjhandle jpeg = tjInitCompress();
  unsigned char* out = nullptr;
  unsigned long size = 0;  // NOLINT: as the library has it
  EXPECT_EQ(tjCompress2(jpeg, pixels.data(), width, 0, height, format, &out, &size, sampling, 100, TJFLAG_ACCURATEDCT),
            0);
  const std::string bytes(reinterpret_cast<char*>(out), size);
  tjFree(out);
  tjDestroy(jpeg);
  return bytes;
}

absl::StatusOr<Image> Decode(const std::string& bytes) { return DecodeImage(FileBytes("image", bytes, nullptr)); }

std::string Refused(const std::string& bytes) {
  const absl::Status status = Decode(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

const std::vector<uint8_t> kSixPixels = {10, 20, 30, 11, 21, 31, 12, 22, 32, 13, 23, 33, 14, 24, 34, 15, 25, 35};

TEST(DecodeImageTest, ReadsColourPngPlaneByPlane) {
  const Image image = Decode(Png(PNG_FORMAT_RGB, 3, 2, kSixPixels)).value();
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.rows, 2);
  EXPECT_EQ(image.columns, 3);
  EXPECT_THAT(image.planes, ElementsAre(10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 30, 31, 32, 33, 34, 35));
}

TEST(DecodeImageTest, ReadsGreyPng) {
  const Image image = Decode(Png(PNG_FORMAT_GRAY, 2, 3, {0, 50, 100, 150, 200, 255})).value();
  EXPECT_EQ(image.channels, 1);
  EXPECT_EQ(image.rows, 3);
  EXPECT_THAT(image.planes, ElementsAre(0, 50, 100, 150, 200, 255));
}

TEST(DecodeImageTest, TransparentPixelsStandOnBlack) {
  const Image image = Decode(Png(PNG_FORMAT_RGBA, 2, 1, {200, 100, 50, 255, 200, 100, 50, 0})).value();
  EXPECT_THAT(image.planes, ElementsAre(200, 0, 100, 0, 50, 0));
}

TEST(DecodeImageTest, ReadsJpeg) {
  std::vector<uint8_t> pixels(16 * 8 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = i % 3 == 0 ? 200 : i % 3 == 1 ? 40 : 90;
  const Image image = Decode(Jpeg(TJPF_RGB, TJSAMP_444, 16, 8, pixels)).value();
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.rows, 8);
  EXPECT_EQ(image.columns, 16);
  for (int i = 0; i < 3 * 128; ++i) EXPECT_NEAR(image.planes[i], i < 128 ? 200 : i < 256 ? 40 : 90, 2) << i;
}

TEST(DecodeImageTest, ReadsGreyJpeg) {
  const Image image = Decode(Jpeg(TJPF_GRAY, TJSAMP_GRAY, 8, 8, std::vector<uint8_t>(64, 77))).value();
  EXPECT_EQ(image.channels, 1);
  EXPECT_EQ(image.planes.size(), 64u);
  EXPECT_NEAR(image.planes[63], 77, 1);
}

TEST(DecodeImageTest, ReadsPgmAndPpm) {
  EXPECT_THAT(Decode("P5\n# by hand\n3 1 # wide\n255\nabc").value().planes, ElementsAre('a', 'b', 'c'));
  const Image image = Decode("P6 1 2 255 RGBrgb").value();
  EXPECT_EQ(image.rows, 2);
  EXPECT_THAT(image.planes, ElementsAre('R', 'r', 'G', 'g', 'B', 'b'));
  EXPECT_THAT(Refused("P5 2 2 255 abc"), HasSubstr("offset 11: the header promises 4 samples and 3 bytes"));
  EXPECT_THAT(Refused("P5 2 2 255 abcde"), HasSubstr("promises 4 samples and 5"));
  EXPECT_THAT(Refused("P5 2 2 65535 abcdefgh"), HasSubstr("the largest sample is 65535"));
  EXPECT_THAT(Refused("P5 2 x"), HasSubstr("offset 5: the header has no number here"));
  EXPECT_THAT(Refused("P5 2 2 255"), HasSubstr("promises 4 samples"));
  EXPECT_THAT(Refused("P5"), HasSubstr("no number"));
  EXPECT_THAT(Refused("P5 # no end"), HasSubstr("no number"));
  EXPECT_THAT(Refused("P5 999999999 999999999 255 "), HasSubstr("out of range"));
  EXPECT_THAT(Refused("P5 0 1 255 "), HasSubstr("out of range"));
}

TEST(DecodeImageTest, RefusesOtherKindsAndEveryTruncation) {
  EXPECT_THAT(Refused("GIF89a"), HasSubstr("image, offset 0: it is neither PNG, JPEG"));
  EXPECT_THAT(Refused(""), HasSubstr("neither"));
  const std::string png = Png(PNG_FORMAT_RGB, 3, 2, kSixPixels);
  const std::string jpeg = Jpeg(TJPF_GRAY, TJSAMP_GRAY, 8, 8, std::vector<uint8_t>(64, 77));
  // libpng wants no more than the last pixel, and a JPEG reader may do without the two bytes of the end.
  for (size_t length = 0; length < png.size() - 16; ++length) Refused(png.substr(0, length));
  for (size_t length = 0; length < jpeg.size() - 4; ++length) Refused(jpeg.substr(0, length));
}

TEST(DecodeImageTest, ChecksTheSizeFirst) {
  std::string png = Png(PNG_FORMAT_GRAY, 1, 1, {0});
  png[16] = 0x10;  // 2^28 columns; the header's checksum no longer fits
  Refused(png);
  std::string jpeg = Jpeg(TJPF_GRAY, TJSAMP_GRAY, 8, 8, std::vector<uint8_t>(64, 77));
  const size_t frame = jpeg.find("\xff\xc0");
  jpeg.replace(frame + 5, 4, "\xea\x60\xea\x60");
  EXPECT_THAT(Refused(jpeg), HasSubstr("an image of 60000 x 60000 pixels is out of range"));
}

class ImageFolderTest : public DatasetFixture {
 protected:
  ImageFolderTest() : DatasetFixture("images") {
    spec_.train = "train";
    spec_.test = "test";
  }
  static std::string Pgm(int columns, int rows, char value) {
    return absl::StrCat("P5 ", columns, " ", rows, " 255 ", std::string(columns * rows, value));
  }
};

TEST_F(ImageFolderTest, FoldersAreClassesInTheOrderOfTheirNames) {
  folder_.Write("train/dog/2.pgm", Pgm(2, 3, 'd'));
  folder_.Write("train/dog/1.png", Png(PNG_FORMAT_GRAY, 2, 3, {1, 2, 3, 4, 5, 6}));
  folder_.Write("train/cat/9.pgm", Pgm(2, 3, 'c'));
  folder_.Write("train/.cache/9.pgm", "nothing");
  folder_.Write("train/eel/.keep", "");
  folder_.Write("test/dog/x.pgm", Pgm(2, 3, 'x'));
  const Dataset dataset = Load().value();
  EXPECT_EQ(dataset.classes, 3);
  EXPECT_EQ(dataset.train.features.shape(), (std::vector<int64_t>{1, 3, 2}));
  EXPECT_EQ(Contents(dataset.train.features), "cccccc\1\2\3\4\5\6dddddd");
  EXPECT_THAT(Numbers(dataset.train.targets), ElementsAre(0, 1, 1));
  EXPECT_THAT(Numbers(dataset.test.targets), ElementsAre(1));
}

TEST_F(ImageFolderTest, RefusesWhatDoesNotFitTogether) {
  folder_.Write("train/cat/1.pgm", Pgm(2, 3, 'c'));
  EXPECT_THAT(Refusal(), HasSubstr("/train: the folder has 1 classes"));
  const std::string dog = folder_.Write("train/dog/1.pgm", Pgm(3, 2, 'c'));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("/train/dog/1.pgm: the image has 1 x 2 x 3 samples"), HasSubstr("1 x 3 x 2")));
  folder_.Write("train/dog/1.pgm", "text");
  EXPECT_THAT(Refusal(), HasSubstr("/train/dog/1.pgm, offset 0: it is neither"));
  folder_.Write("train/dog/1.pgm", Pgm(2, 3, 'd'));
  EXPECT_TRUE(Load().ok());
  folder_.Write("test/eel/1.pgm", Pgm(2, 3, 'e'));
  EXPECT_THAT(Refusal(), HasSubstr("/test/eel: the training folder has no such class; it has cat, dog"));
  std::filesystem::remove_all(folder_.path() + "/test");
  folder_.Write("train/dog/more/1.pgm", Pgm(2, 3, 'd'));
  EXPECT_THAT(Refusal(), HasSubstr("/train/dog/more: a folder stands where a class has its images"));
  std::filesystem::remove_all(folder_.path() + "/train/dog/more");
  folder_.Write("train/readme", "");
  EXPECT_THAT(Refusal(), HasSubstr("/train/readme: a file stands where classes are folders"));
}

}  // namespace
}  // namespace terse
