#include "learning/loss_table.h"

#include <ATen/ATen.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace terse {
namespace {

constexpr int64_t kTop = 5;

at::Tensor FlatOutput(const at::Tensor& output) { return output.reshape({-1, output.size(-1)}); }
at::Tensor FlatTarget(const at::Tensor& target) { return target.reshape({-1}); }

at::Tensor CrossEntropy(const at::Tensor& output, const at::Tensor& target) {
  return at::cross_entropy_loss(output, target);
}
at::Tensor CrossEntropySum(const at::Tensor& output, const at::Tensor& target) {
  return at::cross_entropy_loss(FlatOutput(output), FlatTarget(target), {}, at::Reduction::Sum);
}
at::Tensor Nll(const at::Tensor& output, const at::Tensor& target) { return at::nll_loss(output, target); }
at::Tensor NllSum(const at::Tensor& output, const at::Tensor& target) {
  return at::nll_loss(output, target, {}, at::Reduction::Sum);
}
at::Tensor Bce(const at::Tensor& output, const at::Tensor& target) {
  return at::binary_cross_entropy_with_logits(output, target);
}
at::Tensor BceSum(const at::Tensor& output, const at::Tensor& target) {
  return at::binary_cross_entropy_with_logits(output, target, {}, {}, at::Reduction::Sum);
}
at::Tensor Mse(const at::Tensor& output, const at::Tensor& target) { return at::mse_loss(output, target); }
// A prediction is an example, whatever the number of its values.
at::Tensor MseSum(const at::Tensor& output, const at::Tensor& target) {
  return at::mse_loss(output, target) * output.size(0);
}
at::Tensor SymbolMean(const at::Tensor& output, const at::Tensor& target) {
  return at::cross_entropy_loss(FlatOutput(output), FlatTarget(target));
}
at::Tensor SequenceSum(const at::Tensor& output, const at::Tensor& target) {
  return SymbolMean(output, target) * target.size(1);
}

at::Tensor LargestIsTarget(const at::Tensor& output, const at::Tensor& target) { return output.argmax(-1).eq(target); }
at::Tensor SignIsTarget(const at::Tensor& output, const at::Tensor& target) { return output.gt(0).eq(target.gt(0.5)); }

constexpr Loss kLosses[] = {
    {"cross_entropy", Task::kClasses, CrossEntropy, CrossEntropySum, LargestIsTarget},
    {"nll", Task::kClasses, Nll, NllSum, LargestIsTarget},
    {"mse", Task::kValues, Mse, MseSum, nullptr},
    {"bce_with_logits", Task::kValues, Bce, BceSum, SignIsTarget},
    {"lm_cross_entropy", Task::kText, SymbolMean, CrossEntropySum, LargestIsTarget},
    {"sequence_cross_entropy", Task::kText, SequenceSum, CrossEntropySum, LargestIsTarget},
};

bool IsBinary(const Loss& loss) { return loss.right == SignIsTarget; }

bool Fits(const Loss& loss, Task task, int64_t classes, int64_t outputs) {
  if (task == Task::kClasses && IsBinary(loss)) return classes <= 2 && outputs <= 1;
  return loss.task == task && !(task == Task::kClasses && outputs == 1);
}

}  // namespace

absl::StatusOr<const Loss*> FindLoss(absl::string_view name, Task task, int64_t classes, int64_t outputs) {
  std::vector<std::string> fitting;
  for (const Loss& loss : kLosses) {
    if (!Fits(loss, task, classes, outputs)) continue;
    if (name == loss.name || name == "auto") return &loss;
    fitting.push_back(loss.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("loss '", name,
                                                 "' does not fit the data set and the model; train.loss may be: auto, ",
                                                 absl::StrJoin(fitting, ", ")));
}

at::Tensor FitTargets(const Loss& loss, const at::Tensor& output, const at::Tensor& target) {
  if (loss.task == Task::kValues) return target.to(at::kFloat).reshape(output.sizes());
  return target;
}

void AddScore(const Loss& loss, const at::Tensor& output, const at::Tensor& target, Score* score) {
  const at::Tensor fitted = FitTargets(loss, output, target);
  score->loss += loss.sum(output, fitted).item<double>();
  score->count += loss.right == nullptr ? target.size(0) : fitted.numel();
  if (loss.right == nullptr) return;
  score->correct += loss.right(output, fitted).sum().item<int64_t>();
  if (loss.task == Task::kValues || output.size(-1) <= kTop) return;
  const at::Tensor best = std::get<1>(output.topk(kTop, -1));
  score->top5 = score->top5.value_or(0) + best.eq(fitted.unsqueeze(-1)).sum().item<int64_t>();
}

Evaluation ToEvaluation(const Loss& loss, const Score& score) {
  if (score.count == 0) return {};
  const double count = static_cast<double>(score.count);
  Evaluation evaluation;
  if (loss.right != nullptr) evaluation.accuracy = score.correct / count;
  evaluation.loss = score.loss / count;
  if (score.top5.has_value()) evaluation.top5 = *score.top5 / count;
  if (loss.task == Task::kText) evaluation.perplexity = std::exp(evaluation.loss);
  return evaluation;
}

}  // namespace terse
