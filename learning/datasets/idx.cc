#include "learning/datasets/idx.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "learning/datasets/example_parts.h"
#include "learning/datasets/file_bytes.h"

namespace terse {
namespace {

constexpr uint32_t kUnsignedBytes = 0x00000800;  // in the magic number, plus the number of dimensions
constexpr int64_t kMostDimensions = 4;
constexpr int64_t kMostValues = int64_t{1} << 20;

// Offset of the first value.
int64_t HeaderSize(const Column& column) { return 4 * (2 + static_cast<int64_t>(column.shape().size())); }

// The sizes of the dimensions, the first of them the number of examples.
absl::StatusOr<std::vector<int64_t>> ReadDimensions(const FileBytes& file, ByteReader* reader) {
  TERSE_ASSIGN_OR_RETURN(const uint32_t magic, reader->TakeBigEndian32("the magic number"));
  const int64_t dimensions = static_cast<int64_t>(magic) - kUnsignedBytes;
  if (dimensions < 1 || dimensions > kMostDimensions) {
    return file.Malformed(0, absl::StrFormat("the magic number is 0x%08x where an IDX file of unsigned bytes has "
                                             "0x00000801 to 0x00000804",
                                             magic));
  }
  std::vector<int64_t> sizes(dimensions);
  for (int64_t i = 0; i < dimensions; ++i) {
    TERSE_ASSIGN_OR_RETURN(sizes[i], reader->TakeBigEndian32(absl::StrCat("the size of dimension ", i + 1)));
  }
  // Each number is below 2^32, so the product fits while it is checked after each.
  int64_t values = 1;
  for (int64_t i = 1; i < dimensions; ++i) {
    values *= sizes[i];
    if (values >= 1 && values <= kMostValues) continue;
    return file.Malformed(8, absl::StrCat("examples of ", absl::StrJoin(sizes.begin() + 1, sizes.end(), " x "),
                                          " values are out of range (1 to 2^20)"));
  }
  return sizes;
}

absl::StatusOr<Column> ReadKind(const std::string& path, absl::string_view kind, bool images) {
  TERSE_ASSIGN_OR_RETURN(Column column, ReadIdx(path));
  if (column.shape().empty() != images) return column;
  return absl::InvalidArgumentError(absl::StrCat(path, ", offset 3: the file has ", column.shape().size() + 1,
                                                 " dimensions and can hold no ", kind,
                                                 "; it is not the one meant here: look at the names of the files"));
}

// The labels that belong to a file of images, by its name.
std::string LabelsPath(const std::string& images_path) {
  const size_t name = images_path.rfind('/') + 1;
  const size_t word = images_path.find("images", name), kind = images_path.find("idx", name);
  if (word == std::string::npos || kind == std::string::npos || kind + 3 >= images_path.size()) return "";
  std::string path = images_path;
  path.replace(kind + 3, 1, "1");
  path.replace(word, 6, "labels");
  return path;
}

// Returns that path if there is such a file, or the path of its compressed or uncompressed form.
std::string OrOtherCompression(std::string path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return path;
  return absl::EndsWith(path, ".gz") ? path.substr(0, path.size() - 3) : path + ".gz";
}

}  // namespace

absl::StatusOr<Column> ReadIdx(const std::string& path) {
  TERSE_ASSIGN_OR_RETURN(const FileBytes file, FileBytes::Open(path));
  ByteReader reader(file);
  TERSE_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, ReadDimensions(file, &reader));
  const int64_t count = sizes[0];
  sizes.erase(sizes.begin());
  const int64_t start = reader.offset();
  const Column column =
      Column::Shared(Element::kByte, std::move(sizes), count, file.bytes().data() + start, file.owner());
  const int64_t promised = count * column.bytes_each();
  if (promised == reader.left()) return column;
  if (promised < reader.left()) {
    return file.Malformed(start + promised, "bytes follow the values that the header promises");
  }
  return file.Malformed(start, absl::StrCat("the header promises ", promised, " values, more than the ", reader.left(),
                                            " bytes that are left"));
}

absl::StatusOr<Examples> ReadIdxExamples(const std::string& images_path, const std::string& labels_path,
                                         int64_t classes) {
  TERSE_ASSIGN_OR_RETURN(Column images, ReadKind(images_path, "images", true));
  TERSE_ASSIGN_OR_RETURN(Column labels, ReadKind(labels_path, "labels", false));
  for (int64_t i = 0; classes > 0 && i < labels.count(); ++i) {
    if (labels.Number(i) < classes) continue;
    return absl::InvalidArgumentError(absl::StrCat(labels_path, ", offset ", HeaderSize(labels) + i, ": label ",
                                                   labels.Number(i), " is not in 0..", classes - 1,
                                                   "; the file is damaged or not the one meant here: fetch it again"));
  }
  const std::vector<int64_t>& shape = images.shape();
  if (shape.size() == 2) images = images.Reshaped({1, shape[0], shape[1]});
  return PairExamples(std::move(images), std::move(labels), absl::StrCat(images_path, " with ", labels_path));
}

absl::StatusOr<Dataset> LoadIdx(const DataSpec& spec, const std::string& data_dir) {
  TERSE_ASSIGN_OR_RETURN(const DataParts parts, FindDataParts(spec, data_dir));
  return LoadExampleParts("IDX", parts, [](const std::string& path) -> absl::StatusOr<Examples> {
    const std::string labels = LabelsPath(path);
    if (labels.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(path,
                                                     ": the name of a file of images has \"images\" and \"idx3\" "
                                                     "in it, so that its labels can be found; rename both files"));
    }
    return ReadIdxExamples(path, OrOtherCompression(labels), 0);
  });
}

}  // namespace terse
