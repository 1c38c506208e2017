#include "learning/datasets/example_parts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr int64_t kLargestLabel = int64_t{1} << 20;

std::string Describe(const Column& column) {
  return absl::StrCat(NameOf(column.element()), " {", absl::StrJoin(column.shape(), ", "), "}");
}

// Raises *classes to one more than the largest label.
absl::Status CountClasses(const Examples& part, int64_t* classes) {
  for (int64_t i = 0; i < part.targets.count(); ++i) {
    const double label = part.targets.Number(i);
    if (label < 0 || label > kLargestLabel) {
      return absl::InvalidArgumentError(absl::StrCat(part.Place(i), ": label ", label, " is not in 0..", kLargestLabel,
                                                     "; number the classes from 0, or give floats for values"));
    }
    *classes = std::max(*classes, static_cast<int64_t>(label) + 1);
  }
  return absl::OkStatus();
}

// The place of a number in an example: " 7" in a row of numbers, " [0, 3, 1]" in an image, nothing for a single one.
std::string PlaceInside(const std::vector<int64_t>& shape, int64_t number) {
  if (shape.size() < 2) return shape.empty() ? "" : absl::StrCat(" ", number);
  std::vector<int64_t> place(shape.size());
  for (size_t i = shape.size(); i-- > 0; number /= shape[i]) place[i] = number % shape[i];
  return absl::StrCat(" [", absl::StrJoin(place, ", "), "]");
}

// One NaN makes the loss NaN, of a round as of the test set, and with it the weights.
absl::Status CheckFinite(const Examples& part, const Column& column, absl::string_view what) {
  if (column.element() != Element::kFloat) return absl::OkStatus();
  const auto* const begin = reinterpret_cast<const float*>(column.data());
  const int64_t each = column.elements_each();
  const auto* const end = begin + column.count() * each;
  const float* const bad = std::find_if_not(begin, end, [](float number) { return std::isfinite(number); });
  if (bad == end) return absl::OkStatus();
  const int64_t at = bad - begin;
  return absl::InvalidArgumentError(
      absl::StrCat(part.Place(at / each), ": ", what, PlaceInside(column.shape(), at % each), " is ", *bad,
                   ", which is not a finite number of 32 bits; correct it or leave the example out"));
}

absl::Status CheckSame(const Column& train, const Column& test, absl::string_view what) {
  // Whole numbers of both sizes are the same to a model, and as features also floats; bytes are scaled as features.
  const Element odd = what == "targets" ? Element::kFloat : Element::kByte;
  const bool alike = (train.element() == odd) == (test.element() == odd);
  if (train.shape() == test.shape() && alike) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the ", what, " of the training set are ", Describe(train),
                                                 ", those of the test set ", Describe(test),
                                                 "; make both the same way"));
}

// Checks the part's numbers, and takes from its targets what the data set is for.
absl::Status Admit(const Examples& part, Dataset* dataset) {
  TERSE_RETURN_IF_ERROR(CheckFinite(part, part.features, "feature"));
  TERSE_RETURN_IF_ERROR(CheckFinite(part, part.targets, "target"));
  dataset->task = part.targets.element() == Element::kFloat ? Task::kValues : Task::kClasses;
  if (dataset->task == Task::kValues) return absl::OkStatus();
  return CountClasses(part, &dataset->classes);
}

}  // namespace

absl::StatusOr<Examples> PairExamples(Column features, Column targets, const std::string& name) {
  if (targets.shape() == std::vector<int64_t>{1}) targets = targets.Reshaped({});
  if (features.count() != targets.count() || features.count() == 0 || features.elements_each() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, " holds ", features.count(), " examples of ",
                                                   features.elements_each(), " features and ", targets.count(),
                                                   " targets; take both from the same data set, with one at least"));
  }
  if (targets.element() != Element::kFloat && !targets.shape().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": targets of type ", Describe(targets),
                                                   " are neither classes nor values; give one whole number an example "
                                                   "for classes, floats for values"));
  }
  return Examples{std::move(features), std::move(targets), {{name, 0}}};
}

absl::StatusOr<Dataset> LoadExampleParts(const std::string& format, const DataParts& parts,
                                         const std::function<absl::StatusOr<Examples>(const std::string& path)>& load) {
  Dataset dataset;
  dataset.no_train = parts.no_train;
  dataset.no_test = parts.no_test;
  std::vector<std::string> names;
  if (!parts.train.empty()) {
    TERSE_ASSIGN_OR_RETURN(dataset.train, load(parts.train));
    TERSE_RETURN_IF_ERROR(Admit(dataset.train, &dataset));
    if (dataset.train.files.size() > 1) {
      for (const DataFile& file : dataset.train.files) dataset.file_starts.push_back(file.first);
    }
    names.push_back(parts.train);
  }
  if (!parts.test.empty()) {
    TERSE_ASSIGN_OR_RETURN(dataset.test, load(parts.test));
    TERSE_RETURN_IF_ERROR(Admit(dataset.test, &dataset));
    names.push_back(parts.test);
  }
  if (names.size() == 2) {
    TERSE_RETURN_IF_ERROR(CheckSame(dataset.train.features, dataset.test.features, "features"));
    TERSE_RETURN_IF_ERROR(CheckSame(dataset.train.targets, dataset.test.targets, "targets"));
  }
  dataset.description = absl::StrCat(format, " from ", absl::StrJoin(names, " and "));
  return dataset;
}

}  // namespace terse
