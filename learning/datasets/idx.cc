#include "learning/datasets/idx.h"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr uint32_t kImagesMagic = 0x00000803;
constexpr uint32_t kLabelsMagic = 0x00000801;
constexpr int64_t kMaxPixels = int64_t{1} << 20;
// Deflate expands at most 1032-fold, so a compressed file cannot hold more than this times its length.
constexpr int64_t kMaxExpansion = 1032;

// A sequential reader; zlib passes plain files through unchanged. Not thread-safe.
class IdxFile {
 public:
  static absl::StatusOr<std::unique_ptr<IdxFile>> Open(const std::string& path) {
    struct stat info;
    gzFile file = stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) ? gzopen(path.c_str(), "rb") : nullptr;
    if (file == nullptr) {
      return absl::NotFoundError(
          absl::StrCat(path, ": cannot be opened; check that the file is there and may be read"));
    }
    gzbuffer(file, 1 << 18);
    return std::unique_ptr<IdxFile>(new IdxFile(path, file, info.st_size));
  }
  ~IdxFile() { gzclose_r(file_); }

  // The most bytes that the file can hold once decompressed.
  int64_t MostBytes() { return gzdirect(file_) ? length_ : length_ * kMaxExpansion; }
  int64_t offset() const { return offset_; }

  absl::Status Malformed(int64_t offset, absl::string_view reason) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ", offset ", offset, ": ", reason,
                                                   "; the file is damaged or not the one meant here: fetch it again"));
  }

  absl::Status Read(void* out, int64_t size, absl::string_view what) {
    char* to = static_cast<char*>(out);
    for (int64_t left = size; left > 0;) {
      const int got = gzread(file_, to, static_cast<unsigned>(std::min<int64_t>(left, 1 << 28)));
      if (got < 0) return Damaged();
      if (got == 0) {
        return Malformed(offset_,
                         absl::StrCat("the file ends where ", left, " more bytes of ", what, " should follow"));
      }
      to += got;
      left -= got;
      offset_ += got;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint32_t> ReadNumber(absl::string_view what) {
    unsigned char bytes[4];
    TERSE_RETURN_IF_ERROR(Read(bytes, sizeof bytes, what));
    return static_cast<uint32_t>(bytes[0]) << 24 | static_cast<uint32_t>(bytes[1]) << 16 |
           static_cast<uint32_t>(bytes[2]) << 8 | static_cast<uint32_t>(bytes[3]);
  }

  absl::Status ExpectMagic(uint32_t expected, absl::string_view kind) {
    TERSE_ASSIGN_OR_RETURN(const uint32_t magic, ReadNumber("the magic number"));
    if (magic == expected) return absl::OkStatus();
    return Malformed(
        0, absl::StrFormat("the magic number is 0x%08x where an IDX file of %s has 0x%08x", magic, kind, expected));
  }

  // The body of `size` bytes and nothing after it.
  absl::StatusOr<std::vector<uint8_t>> ReadBody(int64_t size, absl::string_view what) {
    if (size > MostBytes() - offset_) {
      return Malformed(offset_, absl::StrCat("the header promises ", size, " bytes of ", what, ", more than a file of ",
                                             length_, " bytes can hold"));
    }
    std::vector<uint8_t> body(size);
    TERSE_RETURN_IF_ERROR(Read(body.data(), size, what));
    char extra;
    const int got = gzread(file_, &extra, 1);
    if (got < 0) return Damaged();
    if (got > 0) return Malformed(offset_, absl::StrCat("bytes follow the ", what, " that the header promises"));
    // zlib reports a missing or wrong checksum at the end of the stream only here.
    int code = Z_OK;
    gzerror(file_, &code);
    if (code != Z_OK && code != Z_STREAM_END) return Damaged();
    return body;
  }

 private:
  IdxFile(std::string path, gzFile file, int64_t length) : path_(std::move(path)), file_(file), length_(length) {}

  absl::Status Damaged() const {
    int code = Z_OK;
    return Malformed(offset_, absl::StrCat("it cannot be decompressed (", gzerror(file_, &code), ")"));
  }

  const std::string path_;
  gzFile file_;
  const int64_t length_;  // on disk
  int64_t offset_ = 0;    // in the decompressed bytes
};

absl::Status ReadImages(const std::string& path, int64_t* count, Examples* examples) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<IdxFile> file, IdxFile::Open(path));
  TERSE_RETURN_IF_ERROR(file->ExpectMagic(kImagesMagic, "images"));
  TERSE_ASSIGN_OR_RETURN(*count, file->ReadNumber("the number of images"));
  TERSE_ASSIGN_OR_RETURN(examples->rows, file->ReadNumber("the number of rows"));
  TERSE_ASSIGN_OR_RETURN(examples->columns, file->ReadNumber("the number of columns"));
  // Each number is below 2^32, so the product of two fits and is checked before the third joins.
  if (examples->rows == 0 || examples->columns == 0 || examples->rows > kMaxPixels / examples->columns) {
    return file->Malformed(8, absl::StrCat("images of ", examples->rows, " x ", examples->columns,
                                           " pixels are out of range (1 to 2^20)"));
  }
  TERSE_ASSIGN_OR_RETURN(examples->images, file->ReadBody(*count * examples->pixels(), "images"));
  return absl::OkStatus();
}

absl::Status ReadLabels(const std::string& path, int64_t classes, Examples* examples) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<IdxFile> file, IdxFile::Open(path));
  TERSE_RETURN_IF_ERROR(file->ExpectMagic(kLabelsMagic, "labels"));
  TERSE_ASSIGN_OR_RETURN(const int64_t count, file->ReadNumber("the number of labels"));
  const int64_t start = file->offset();
  TERSE_ASSIGN_OR_RETURN(examples->labels, file->ReadBody(count, "labels"));
  const auto bad = std::find_if(examples->labels.begin(), examples->labels.end(),
                                [classes](uint8_t label) { return label >= classes; });
  if (bad == examples->labels.end()) return absl::OkStatus();
  return file->Malformed(start + (bad - examples->labels.begin()),
                         absl::StrCat("label ", static_cast<int>(*bad), " is not in 0..", classes - 1));
}

}  // namespace

absl::StatusOr<Examples> ReadIdxExamples(const std::string& images_path, const std::string& labels_path,
                                         int64_t classes) {
  Examples examples;
  int64_t images = 0;
  TERSE_RETURN_IF_ERROR(ReadImages(images_path, &images, &examples));
  TERSE_RETURN_IF_ERROR(ReadLabels(labels_path, classes, &examples));
  if (images != examples.count()) {
    return absl::InvalidArgumentError(absl::StrCat(images_path, " holds ", images, " images, ", labels_path, " holds ",
                                                   examples.count(), " labels; take both from the same data set"));
  }
  return examples;
}

}  // namespace terse
