#include "learning/data_fit.h"

#include <functional>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"

namespace terse {
namespace {

int64_t NumbersIn(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
}

// The examples that a member has; those of the training set if it has some.
const Examples& SomeExamples(const Dataset& dataset) {
  return dataset.train.count() > 0 ? dataset.train : dataset.test;
}

absl::Status TooManyClasses(absl::string_view model, int64_t outputs, const Dataset& dataset) {
  const bool text = dataset.task == Task::kText;
  return absl::InvalidArgumentError(absl::StrCat(
      dataset.description, text ? "" : absl::StrCat(" has ", dataset.classes, " classes"), "; ", model, " tells ",
      outputs, text ? " symbols" : " classes", " apart: set model.classes", text ? ", or lower data.vocabulary" : ""));
}

// Labels in the order of the examples.
absl::Status CheckLabels(absl::string_view model, int64_t outputs, const Examples& part) {
  for (int64_t i = 0; i < part.count(); ++i) {
    const auto label = static_cast<int64_t>(part.targets.Number(i));
    if (label < outputs) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        part.Place(i), ": label ", label, " is not in 0..", outputs - 1, ", the classes that ", model,
        " tells apart; correct the label, set model.classes, or save the targets as floats if they are no classes"));
  }
  return absl::OkStatus();
}

absl::Status CheckValues(absl::string_view model, int64_t outputs, const Examples& part) {
  const int64_t each = part.targets.elements_each();
  if (part.count() == 0 || each == outputs) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(part.Place(0), ": the target is ", each, each == 1 ? " real number" : " real numbers", ", and ",
                   model, " gives ", outputs, outputs == 1 ? " output" : " outputs", "; set model.classes = ", each,
                   ", or save the targets as whole numbers if they are classes"));
}

}  // namespace

std::string DataKind(const Dataset& dataset) {
  const char* const kind = dataset.task == Task::kText      ? "are text"
                           : dataset.task == Task::kClasses ? "have classes as targets"
                                                            : "have real numbers as targets";
  return absl::StrCat("the data (", dataset.description, ") ", kind);
}

absl::Status CheckInput(const ModelDefinition& model, const Dataset& dataset) {
  const bool text = dataset.task == Task::kText, takes_text = model.input == Element::kInt32;
  if (text != takes_text) {
    return absl::InvalidArgumentError(absl::StrCat("model '", model.name, "' takes ", takes_text ? "text" : "examples",
                                                   ", and ", DataKind(dataset),
                                                   "; choose a model and a data set that fit"));
  }
  if (text) return absl::OkStatus();
  const Examples& examples = SomeExamples(dataset);
  const std::vector<int64_t>& shape = examples.features.shape();
  const bool flattens = model.input_shape.size() == 1;
  if (flattens ? NumbersIn(shape) == model.input_shape[0] : shape == model.input_shape) return absl::OkStatus();
  const std::string taken = flattens ? absl::StrCat(model.input_shape[0], " numbers")
                                     : absl::StrCat("the shape [", absl::StrJoin(model.input_shape, ", "), "]");
  const std::string has = flattens ? absl::StrCat(NumbersIn(shape), " numbers")
                                   : absl::StrCat("the shape [", absl::StrJoin(shape, ", "), "]");
  return absl::InvalidArgumentError(
      absl::StrCat(examples.Place(0), ": the example has ", has, ", and model '", model.name, "' takes ", taken,
                   flattens ? "; set model.inputs, or bring the data to that size"
                            : "; choose a model that fits, or bring the data to that shape"));
}

absl::Status CheckOutputs(absl::string_view model, int64_t outputs, const Dataset& dataset) {
  if (dataset.task == Task::kValues) {
    TERSE_RETURN_IF_ERROR(CheckValues(model, outputs, dataset.train));
    return CheckValues(model, outputs, dataset.test);
  }
  if (dataset.classes <= outputs || (outputs == 1 && dataset.classes == 2)) return absl::OkStatus();
  if (dataset.task == Task::kClasses) {
    const int64_t classes = outputs == 1 ? 2 : outputs;
    TERSE_RETURN_IF_ERROR(CheckLabels(model, classes, dataset.train));
    TERSE_RETURN_IF_ERROR(CheckLabels(model, classes, dataset.test));
  }
  return TooManyClasses(model, outputs, dataset);
}

}  // namespace terse
