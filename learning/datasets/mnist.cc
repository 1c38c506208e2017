#include "learning/datasets/mnist.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "learning/datasets/idx.h"

namespace terse {
namespace {

constexpr int64_t kSide = 28;
constexpr int64_t kClasses = 10;

absl::StatusOr<std::string> Find(const std::string& directory, absl::string_view name) {
  for (absl::string_view folder : {"/", "/mnist/"}) {
    for (absl::string_view ending : {"", ".gz"}) {
      const std::string path = absl::StrCat(directory, folder, name, ending);
      if (access(path.c_str(), R_OK) == 0) return path;
    }
  }
  return absl::NotFoundError(
      absl::StrCat("no readable ", name, " or ", name, ".gz in ", directory, " or ", directory,
                   "/mnist; put MNIST's four IDX files there, or give no data directory to train "
                   "on rendered digits"));
}

absl::StatusOr<Examples> LoadPart(const std::string& directory, absl::string_view part) {
  TERSE_ASSIGN_OR_RETURN(const std::string images, Find(directory, absl::StrCat(part, "-images-idx3-ubyte")));
  TERSE_ASSIGN_OR_RETURN(const std::string labels, Find(directory, absl::StrCat(part, "-labels-idx1-ubyte")));
  TERSE_ASSIGN_OR_RETURN(Examples examples, ReadIdxExamples(images, labels, kClasses));
  if (examples.rows != kSide || examples.columns != kSide || examples.count() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(images, ": ", examples.count(), " images of ", examples.rows, " x ",
                                                   examples.columns,
                                                   " pixels where MNIST has 28 x 28 and at least one"
                                                   "; check that the file belongs to MNIST"));
  }
  return examples;
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

}  // namespace terse
