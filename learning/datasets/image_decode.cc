#include "learning/datasets/image_decode.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr int64_t kMostSamples = int64_t{1} << 24;

// Returns an empty image of that size.
absl::StatusOr<Image> Sized(const FileBytes& file, int64_t channels, int64_t rows, int64_t columns) {
  if (rows < 1 || columns < 1 || rows > kMostSamples / channels / columns) {
    return file.Malformed(0, absl::StrCat("an image of ", columns, " x ", rows,
                                          " pixels is out of range (1 to 2^24 "
                                          "samples)"));
  }
  return Image{channels, rows, columns, std::vector<uint8_t>(channels * rows * columns)};
}

// Splits the image, which decoders give pixel by pixel, into planes.
void Split(const uint8_t* pixels, Image* image) {
  const int64_t plane = image->rows * image->columns;
  for (int64_t i = 0; i < plane; ++i) {
    for (int64_t channel = 0; channel < image->channels; ++channel) image->planes[channel * plane + i] = *pixels++;
  }
}

absl::StatusOr<Image> DecodePng(const FileBytes& file) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, decltype(&png_image_free)> guard(&png, &png_image_free);
  if (png_image_begin_read_from_memory(&png, file.bytes().data(), file.bytes().size()) == 0) {
    return file.Malformed(0, absl::StrCat("it is no readable PNG (", png.message, ")"));
  }
  const bool colour = (png.format & PNG_FORMAT_FLAG_COLOR) != 0;
  TERSE_ASSIGN_OR_RETURN(Image image, Sized(file, colour ? 3 : 1, png.height, png.width));
  png.format = colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(png));
  const png_color black = {0, 0, 0};
  if (png_image_finish_read(&png, &black, pixels.data(), 0, nullptr) == 0) {
    return file.Malformed(0, absl::StrCat("it is no whole PNG (", png.message, ")"));
  }
  Split(pixels.data(), &image);
  return image;
}

absl::StatusOr<Image> DecodeJpeg(const FileBytes& file) {
  const std::unique_ptr<void, decltype(&tjDestroy)> jpeg(tjInitDecompress(), &tjDestroy);
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.bytes().data());
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (tjDecompressHeader3(jpeg.get(), bytes, file.size(), &width, &height, &subsampling, &colours) != 0) {
    return file.Malformed(0, absl::StrCat("it is no readable JPEG (", tjGetErrorStr2(jpeg.get()), ")"));
  }
  const bool grey = colours == TJCS_GRAY;
  TERSE_ASSIGN_OR_RETURN(Image image, Sized(file, grey ? 1 : 3, height, width));
  std::vector<uint8_t> pixels(image.planes.size());
  // The exact transform, so that every machine and every reader gets the same bytes.
  if (tjDecompress2(jpeg.get(), bytes, file.size(), pixels.data(), width, 0, height, grey ? TJPF_GRAY : TJPF_RGB,
                    TJFLAG_ACCURATEDCT) != 0) {
    return file.Malformed(0, absl::StrCat("it is no whole JPEG (", tjGetErrorStr2(jpeg.get()), ")"));
  }
  Split(pixels.data(), &image);
  return image;
}

// The next number of a PGM or PPM header, behind white space and comments.
absl::StatusOr<int64_t> HeaderNumber(const FileBytes& file, size_t* at) {
  const absl::string_view bytes = file.bytes();
  while (*at < bytes.size() && (absl::ascii_isspace(bytes[*at]) || bytes[*at] == '#')) {
    *at = bytes[*at] == '#' ? std::min(bytes.size(), bytes.find('\n', *at)) : *at + 1;
  }
  size_t end = *at;
  while (end < bytes.size() && absl::ascii_isdigit(bytes[end])) ++end;
  int64_t number = 0;
  if (!absl::SimpleAtoi(bytes.substr(*at, end - *at), &number)) {
    return file.Malformed(*at, "the header has no number here");
  }
  *at = end;
  return number;
}

absl::StatusOr<Image> DecodeNetpbm(const FileBytes& file) {
  size_t at = 2;
  TERSE_ASSIGN_OR_RETURN(const int64_t columns, HeaderNumber(file, &at));
  TERSE_ASSIGN_OR_RETURN(const int64_t rows, HeaderNumber(file, &at));
  TERSE_ASSIGN_OR_RETURN(const int64_t most, HeaderNumber(file, &at));
  if (most != 255) return file.Malformed(at, absl::StrCat("the largest sample is ", most, "; only 255 is read"));
  ++at;  // one white space
  TERSE_ASSIGN_OR_RETURN(Image image, Sized(file, file.bytes()[1] == '5' ? 1 : 3, rows, columns));
  const int64_t left = file.size() - static_cast<int64_t>(at);
  if (left != static_cast<int64_t>(image.planes.size())) {
    return file.Malformed(
        at, absl::StrCat("the header promises ", image.planes.size(), " samples and ", left, " bytes are left"));
  }
  Split(reinterpret_cast<const uint8_t*>(file.bytes().data()) + at, &image);
  return image;
}

}  // namespace

absl::StatusOr<Image> DecodeImage(const FileBytes& file) {
  if (absl::StartsWith(file.bytes(), "\x89PNG")) return DecodePng(file);
  if (absl::StartsWith(file.bytes(), "\xff\xd8\xff")) return DecodeJpeg(file);
  if (absl::StartsWith(file.bytes(), "P5") || absl::StartsWith(file.bytes(), "P6")) return DecodeNetpbm(file);
  return file.Malformed(0, "it is neither PNG, JPEG, nor binary PGM or PPM");
}

}  // namespace terse
