#include "learning/evaluator.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "core/status_details.h"
#include "learning/batches.h"
#include "learning/blueprint.h"
#include "learning/loss_table.h"
#include "learning/script_model.h"
#include "learning/seeded_draws.h"
#include "learning/torch_edge.h"

namespace terse {
namespace {

constexpr int64_t kMostExamples = 500;
constexpr int64_t kMostNumbers = int64_t{1} << 22;  // of the features of a batch
constexpr int64_t kTextRows = 20;
constexpr int64_t kTriedExamples = 16;
constexpr int64_t kAllBatches = std::numeric_limits<int64_t>::max();
// Batches that buffers which the clients keep are estimated from.
constexpr int64_t kCalibrationBatches = 8;
constexpr uint64_t kCalibrationSeed = 1;
// A statistic that keeps more than all but this of its start is none.
constexpr double kLeastForgotten = 1e-6;

// Or may be; counters are none.
bool IsStatistic(const at::Tensor& buffer) { return buffer.is_floating_point(); }

class TorchEvaluator : public Evaluator {
 public:
  TorchEvaluator(const RunConfig& config, std::shared_ptr<const Blueprint> blueprint,
                 std::shared_ptr<const Dataset> dataset, const Loss* loss, c10::Device device)
      : normalize_(config.data.normalize),
        unroll_(config.train.unroll),
        blueprint_(std::move(blueprint)),
        dataset_(std::move(dataset)),
        loss_(loss),
        device_(device) {}

  absl::StatusOr<Evaluation> Evaluate(absl::Span<const float> weights) override {
    const int64_t size = blueprint_->layout().size();
    if (static_cast<int64_t>(weights.size()) != size) {
      return absl::InvalidArgumentError(absl::StrCat("the model has ", size, " weights, got ", weights.size()));
    }
    return WithModel("evaluating", [&]() -> absl::StatusOr<Evaluation> {
      AdoptThreadCount();
      const at::NoGradGuard no_grad;
      model_->SetWeights(weights);
      const bool is_text = dataset_->task == Task::kText;
      if (!is_text && absl::c_any_of(model_->local_buffers(), IsStatistic)) Calibrate();
      Score score;
      TERSE_RETURN_IF_ERROR(is_text ? ScoreText(kAllBatches, &score) : ScoreExamples(kAllBatches, &score));
      return ToEvaluation(*loss_, score);
    });
  }

  // One batch, evaluated and trained. INVALID_ARGUMENT when the model does not take this data, gives what the loss does
  // not take, or has no gradient.
  absl::Status Try() {
    absl::Status tried = WithModel("a first batch", [&]() -> absl::Status {
      const at::NoGradGuard no_grad;
      Score score;
      return dataset_->task == Task::kText ? ScoreText(1, &score) : ScoreExamples(1, &score);
    });
    if (tried.ok()) tried = CatchTorch("a first step", [&] { return TryStep(); });
    if (tried.ok()) return tried;
    return WithDetails(
        absl::InvalidArgumentError(absl::StrCat("the model does not fit ", dataset_->description, ": ", tried.message(),
                                                "; its forward is given ", InputText(),
                                                ", and its output must suit train.loss (", loss_->name, ")")),
        DetailsOf(tried));
  }

 private:
  // Runs `body` with a model that lives no longer: between evaluations it would take as much memory as the weights.
  template <typename Body>
  auto WithModel(absl::string_view doing, const Body& body) -> decltype(body()) {
    const absl::Cleanup drop = [this] { model_ = nullptr; };
    return CatchTorch(doing, [&]() -> decltype(body()) {
      model_ = blueprint_->Make(device_);
      return body();
    });
  }

  std::string InputText() const {
    if (dataset_->task == Task::kText) return "int64 [batch, time]";
    const std::vector<int64_t>& shape = dataset_->test.features.shape();
    return absl::StrCat("float32 [batch", shape.empty() ? "" : ", ", absl::StrJoin(shape, ", "), "]");
  }

  // On a model of its own, whose buffers it changes.
  absl::Status TryStep() const {
    const std::unique_ptr<ScriptModel> model = blueprint_->Make(device_);
    model->SetTraining(true);
    TERSE_ASSIGN_OR_RETURN(const Batch batch, dataset_->task == Task::kText ? FirstWindows() : FirstExamples());
    ScriptModel::State state = model->InitialState(batch.x.size(0));
    model->LossAndGradient(batch, *loss_, &state);
    return absl::OkStatus();
  }

  // At least two, since normalisation over a batch of one has no variance.
  absl::StatusOr<Batch> FirstExamples() const {
    std::vector<uint32_t> indices(std::max<int64_t>(2, std::min(kTriedExamples, dataset_->test.count())));
    for (size_t i = 0; i < indices.size(); ++i) indices[i] = i % dataset_->test.count();
    return Batch{FeaturesOf(dataset_->test.features, indices, normalize_, device_),
                 TargetsOf(dataset_->test.targets, indices, device_)};
  }

  absl::StatusOr<Batch> FirstWindows() const {
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> windows, Windows());
    return windows->Next();
  }

  // Rows of the test text side by side.
  absl::StatusOr<std::unique_ptr<BatchSource>> Windows() const {
    const int64_t symbols = dataset_->test_text.count();
    const int64_t rows = std::max<int64_t>(1, std::min(kTextRows, symbols / (unroll_ + 1)));
    const auto text = std::shared_ptr<const Text>(dataset_, &dataset_->test_text);
    return MakeTextBatches(text, {0, symbols}, rows, unroll_, device_);
  }

  absl::Status ScoreExamples(int64_t batches, Score* score) {
    model_->SetTraining(false);
    const Examples& test = dataset_->test;
    std::vector<uint32_t> indices(test.count());
    std::iota(indices.begin(), indices.end(), 0u);
    for (int64_t first = 0; first < test.count() && batches > 0; first += BatchSize(), --batches) {
      const auto batch = absl::MakeConstSpan(indices).subspan(first, BatchSize());
      const at::Tensor output = model_->Forward(FeaturesOf(test.features, batch, normalize_, device_), &state_);
      AddScore(*loss_, output, TargetsOf(test.targets, batch, device_), score);
    }
    return absl::OkStatus();
  }

  // Rows side by side, each from the empty state on; a rest that fills no row is left out.
  absl::Status ScoreText(int64_t batches, Score* score) {
    model_->SetTraining(false);
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> windows, Windows());
    for (; windows->position().epoch == 0 && batches > 0; --batches) {
      const Batch batch = windows->Next();
      if (batch.fresh) state_ = model_->InitialState(windows->rows());
      AddScore(*loss_, model_->Forward(batch.x, &state_), batch.target, score);
    }
    return absl::OkStatus();
  }

  // Every client has its own running statistics and the coordinator none, so they are estimated anew. A statistic is
  // keep * start + (1 - keep) * mean after a pass, with a `keep` that only the model knows and that may be close to 1:
  // a second pass from another start tells it.
  void Calibrate() {
    const std::vector<at::Tensor> start = CloneAll(model_->local_buffers());
    const std::vector<at::Tensor> first = CalibrationPass(start);
    std::vector<at::Tensor> moved = start;
    for (size_t i = 0; i < first.size(); ++i) {
      if (!IsStatistic(first[i])) continue;
      const at::Tensor change = first[i] - start[i];
      moved[i] = start[i] + change.ne(0) * (1 + change.abs());
    }
    const std::vector<at::Tensor> second = CalibrationPass(moved);
    for (size_t i = 0; i < first.size(); ++i) {
      if (!IsStatistic(first[i])) continue;
      const at::Tensor keep = (second[i] - first[i]) / (moved[i] - start[i]);
      const at::Tensor mean = (first[i] - keep * start[i]) / (1 - keep);
      model_->local_buffers()[i].copy_(at::where(keep.lt(1 - kLeastForgotten), mean, first[i]));
    }
  }

  // Local buffers after training passes, without steps.
  std::vector<at::Tensor> CalibrationPass(const std::vector<at::Tensor>& start) {
    for (size_t i = 0; i < start.size(); ++i) model_->local_buffers()[i].copy_(start[i]);
    model_->SetTraining(true);
    const Column& features = (dataset_->train.count() > 0 ? dataset_->train : dataset_->test).features;
    const int64_t count = features.count(), size = std::min(count, BatchSize());
    const int64_t batches = std::min(kCalibrationBatches, count / size);  // whole ones: one example has no variance
    const SeededDraws draws(kCalibrationSeed);
    std::vector<uint32_t> indices(size);
    for (int64_t batch = 0; batch < batches; ++batch) {
      // Each batch reaches over the whole set, which may be sorted by class.
      for (int64_t i = 0; i < size; ++i) indices[i] = (i * batches + batch) * count / (size * batches);
      model_->Forward(FeaturesOf(features, indices, normalize_, device_), &state_);
    }
    return CloneAll(model_->local_buffers());
  }

  int64_t BatchSize() const {
    const int64_t each = std::max<int64_t>(1, dataset_->test.features.elements_each());
    return std::max<int64_t>(1, std::min(kMostExamples, kMostNumbers / each));
  }

  const std::string normalize_;
  const int64_t unroll_;
  const std::shared_ptr<const Blueprint> blueprint_;
  const std::shared_ptr<const Dataset> dataset_;
  const Loss* const loss_;
  const c10::Device device_;
  std::unique_ptr<ScriptModel> model_;  // within WithModel
  ScriptModel::State state_;
};

// A limit that no evaluation can reach would let the run go on to its last round.
absl::Status CheckTarget(const RunLimits& limits, const Loss& loss) {
  if (loss.right != nullptr) return absl::OkStatus();
  if (limits.patience > 0 && limits.patience_metric == PatienceMetric::kAccuracy) {
    return absl::InvalidArgumentError(
        absl::StrCat("limits.patience_metric = 'accuracy' finds nothing to watch: with train.loss = '", loss.name,
                     "' no prediction is right or wrong; use 'loss'"));
  }
  if (limits.accuracy <= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("limits.accuracy = ", limits.accuracy,
                                                 " can never be reached: with train.loss = '", loss.name,
                                                 "' no prediction is right or wrong; use limits.loss"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Evaluator>> MakeEvaluator(const RunConfig& config,
                                                         std::shared_ptr<const Blueprint> blueprint,
                                                         std::shared_ptr<const Dataset> dataset,
                                                         absl::string_view device) {
  if (dataset->test_count() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("there is no test set to evaluate on: ",
                                                   dataset->no_test.empty() ? dataset->description : dataset->no_test));
  }
  TERSE_RETURN_IF_ERROR(blueprint->CheckFit(*dataset));
  TERSE_ASSIGN_OR_RETURN(const Loss* loss,
                         FindLoss(config.train.loss, dataset->task, dataset->classes, blueprint->outputs()));
  TERSE_RETURN_IF_ERROR(CheckTarget(config.limits, *loss));
  return CatchTorch("preparing the model", [&]() -> absl::StatusOr<std::unique_ptr<Evaluator>> {
    TERSE_ASSIGN_OR_RETURN(const c10::Device where, ChooseDevice(device));
    auto evaluator = std::make_unique<TorchEvaluator>(config, blueprint, std::move(dataset), loss, where);
    // Nobody else has looked at a user's module.
    if (blueprint->outputs() == 0) TERSE_RETURN_IF_ERROR(evaluator->Try());
    return evaluator;
  });
}

}  // namespace terse
