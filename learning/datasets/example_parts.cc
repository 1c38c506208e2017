#include "learning/datasets/example_parts.h"

#include <algorithm>
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
absl::Status CountClasses(const Column& targets, const std::string& name, int64_t* classes) {
  for (int64_t i = 0; i < targets.count(); ++i) {
    const double label = targets.Number(i);
    if (label < 0 || label > kLargestLabel) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": label ", label, " of example ", i, " is not in 0..",
                                                     kLargestLabel,
                                                     "; number the classes from 0, or give floats for values"));
    }
    *classes = std::max(*classes, static_cast<int64_t>(label) + 1);
  }
  return absl::OkStatus();
}

absl::Status CheckSame(const Column& train, const Column& test, absl::string_view what) {
  // Labels may come as numbers of any size; features not, because bytes are scaled and other numbers are not.
  const bool labels = what == "targets" && train.element() != Element::kFloat && test.element() != Element::kFloat;
  if (train.shape() == test.shape() && (labels || train.element() == test.element())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the ", what, " of the training set are ", Describe(train),
                                                 ", those of the test set ", Describe(test),
                                                 "; make both the same way"));
}

absl::Status SetTask(const std::string& name, const Examples& part, Dataset* dataset) {
  dataset->task = part.targets.element() == Element::kFloat ? Task::kValues : Task::kClasses;
  if (dataset->task == Task::kValues) return absl::OkStatus();
  return CountClasses(part.targets, name, &dataset->classes);
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
  return Examples{std::move(features), std::move(targets)};
}

absl::StatusOr<Dataset> LoadExampleParts(
    const std::string& format, const DataParts& parts,
    const std::function<absl::StatusOr<ExamplePart>(const std::string& path)>& load) {
  Dataset dataset;
  std::vector<std::string> names;
  if (!parts.train.empty()) {
    TERSE_ASSIGN_OR_RETURN(ExamplePart part, load(parts.train));
    dataset.train = std::move(part.examples);
    if (part.file_starts.size() > 1) dataset.file_starts = std::move(part.file_starts);
    TERSE_RETURN_IF_ERROR(SetTask(parts.train, dataset.train, &dataset));
    names.push_back(parts.train);
  }
  if (!parts.test.empty()) {
    TERSE_ASSIGN_OR_RETURN(ExamplePart part, load(parts.test));
    dataset.test = std::move(part.examples);
    TERSE_RETURN_IF_ERROR(SetTask(parts.test, dataset.test, &dataset));
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
