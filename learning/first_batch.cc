#include "learning/first_batch.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "core/status_details.h"
#include "learning/batches.h"
#include "learning/data_fit.h"
#include "learning/loss_table.h"
#include "learning/script_model.h"
#include "learning/torch_edge.h"

namespace terse {
namespace {

constexpr absl::string_view kModel = "the run's model";

// Two of them, because some modules cannot tell the batch from the rest where it has one row.
at::Tensor FirstRows(const RunConfig& config, const Dataset& dataset, c10::Device device) {
  const std::vector<uint32_t> indices = {0, dataset.train.count() > 1 ? 1u : 0u};
  return FeaturesOf(dataset.train.features, indices, config.data.normalize, device);
}

absl::StatusOr<at::Tensor> FirstInput(const RunConfig& config, const std::shared_ptr<const Dataset>& dataset,
                                      c10::Device device) {
  if (dataset->task != Task::kText) return FirstRows(config, *dataset, device);
  const auto text = std::shared_ptr<const Text>(dataset, &dataset->train_text);
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> windows,
                         MakeTextBatches(text, {0, text->count()}, /*batch_size=*/1, config.train.unroll, device));
  return windows->Next().x;
}

absl::Status NotTaken(const Dataset& dataset, const absl::Status& failure) {
  const std::string refused =
      dataset.task == Task::kText
          ? absl::StrCat(dataset.description, ": ", kModel, " does not take its symbols, whole numbers below ",
                         dataset.classes)
          : absl::StrCat(dataset.train.Place(0), ": ", kModel, " does not take the example, float32 [",
                         absl::StrJoin(dataset.train.features.shape(), ", "), "]");
  return WithDetails(absl::InvalidArgumentError(absl::StrCat(
                         refused, "; bring the data into the form that the model was made for, or correct [data]")),
                     absl::StrCat(failure.message(), "\n", DetailsOf(failure)));
}

// The numbers that the output has for each example, or for each symbol of a text.
int64_t WidthOf(const at::Tensor& output, const at::Tensor& input, bool text) {
  const int64_t predictions = text ? input.numel() : input.size(0);
  return output.numel() / predictions;
}

// The loss was chosen before the width of a user's module was known.
absl::Status CheckLoss(const RunConfig& config, const Dataset& dataset, int64_t known_width, int64_t width) {
  TERSE_ASSIGN_OR_RETURN(const Loss* loss, FindLoss(config.train.loss, dataset.task, dataset.classes, known_width));
  if (FindLoss(loss->name, dataset.task, dataset.classes, width).ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(kModel, " has ", width, width == 1 ? " output" : " outputs", " for an example, and the loss '",
                   loss->name, "' takes ", width == 1 ? "two or more" : "one", "; ",
                   width == 1 ? "set train.loss = 'bce_with_logits', or give the model an output for each class"
                              : "set train.loss = 'auto'"));
}

}  // namespace

absl::Status TryTrainingData(const RunConfig& config, const Blueprint& blueprint,
                             const std::shared_ptr<const Dataset>& dataset, c10::Device device) {
  AdoptThreadCount();
  const at::NoGradGuard no_grad;
  TERSE_ASSIGN_OR_RETURN(const at::Tensor input, FirstInput(config, dataset, device));
  const std::unique_ptr<ScriptModel> model = blueprint.Make(device);
  model->SetTraining(false);
  at::Tensor output;
  const absl::Status taken = CatchTorch("a first batch", [&] {
    ScriptModel::State state = model->InitialState(input.size(0));
    output = model->Forward(input, &state);
    return absl::OkStatus();
  });
  if (!taken.ok()) return NotTaken(*dataset, taken);
  const int64_t width = WidthOf(output, input, dataset->task == Task::kText);
  TERSE_RETURN_IF_ERROR(CheckOutputs(kModel, width, *dataset));
  return CheckLoss(config, *dataset, blueprint.outputs(), width);
}

}  // namespace terse
