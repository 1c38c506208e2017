#include "learning/datasets/mnist.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "learning/datasets/data_files.h"
#include "learning/datasets/glyph_digits.h"
#include "learning/datasets/idx.h"

namespace terse {
namespace {

constexpr int64_t kClasses = 10;

absl::StatusOr<std::string> Find(const std::string& directory, absl::string_view name) {
  return FindDataFile(directory, {"mnist"}, name,
                      "put MNIST's four IDX files there, or give no data directory to train on rendered digits");
}

absl::StatusOr<Examples> LoadPart(const std::string& directory, absl::string_view part) {
  TERSE_ASSIGN_OR_RETURN(const std::string images, Find(directory, absl::StrCat(part, "-images-idx3-ubyte")));
  TERSE_ASSIGN_OR_RETURN(const std::string labels, Find(directory, absl::StrCat(part, "-labels-idx1-ubyte")));
  TERSE_ASSIGN_OR_RETURN(Examples examples, ReadIdxExamples(images, labels, kClasses));
  if (examples.features.shape() == std::vector<int64_t>{1, 28, 28}) return examples;
  return absl::InvalidArgumentError(absl::StrCat(images, ": images of ",
                                                 absl::StrJoin(examples.features.shape(), " x "),
                                                 " values where MNIST has 1 x 28 x 28; check that the file belongs to "
                                                 "MNIST"));
}

}  // namespace

absl::StatusOr<Dataset> LoadMnist(const std::string& directory) {
  Dataset dataset;
  dataset.description = absl::StrCat("MNIST from ", directory);
  dataset.classes = kClasses;
  TERSE_ASSIGN_OR_RETURN(dataset.train, LoadPart(directory, "train"));
  TERSE_ASSIGN_OR_RETURN(dataset.test, LoadPart(directory, "t10k"));
  return dataset;
}

absl::StatusOr<Dataset> LoadMnistOrGlyphs(const DataSpec&, const std::string& data_dir) {
  if (data_dir.empty()) return GlyphDigits(GlyphDigitsOptions());
  return LoadMnist(data_dir);
}

}  // namespace terse
