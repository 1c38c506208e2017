#include "learning/local_trainer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/epochs.h"
#include "core/learning_rate.h"
#include "core/random.h"
#include "core/status.h"
#include "learning/batches.h"
#include "learning/blueprint.h"
#include "learning/data_fit.h"
#include "learning/datasets/dataset_table.h"
#include "learning/first_batch.h"
#include "learning/gradient_tasks.h"
#include "learning/gradient_terms.h"
#include "learning/loss_table.h"
#include "learning/optimizers.h"
#include "learning/partition.h"
#include "learning/script_model.h"
#include "learning/seeded_draws.h"
#include "learning/tensor_optimizer.h"
#include "learning/torch_edge.h"
#include "learning/trainer_state.h"

namespace terse {
namespace {

// Keeps the draws of dropout apart from the other uses of a run's seed.
constexpr uint64_t kDropoutSalt = 0x64726f706f757421ULL;

Id128 HashOf(const Text& text) {
  return HashBytes({reinterpret_cast<const char*>(text.symbols.data()), text.symbols.size() * sizeof(text.symbols[0])});
}

// Returns the identity of the training that a saved state belongs to; RestoreState refuses a state with another one.
Id128 StateIdentity(const RunConfig& config, const Shard& shard, const Layout& layout, const Dataset& dataset) {
  const OptimizerSpec& optimizer = config.train.optimizer;
  const Id128 targets = dataset.task == Task::kText ? HashOf(dataset.train_text) : dataset.train.targets.Hash();
  return HashBytes(absl::StrCat(layout.Hash().ToBytes(), targets.ToBytes(), "/", config.model.name, "/",
                                DatasetKey(config.data), "/", config.data.partition, "/", shard.index, "/", shard.count,
                                "/", config.seed, "/", config.train.batch_size, "/", config.train.unroll, "/",
                                optimizer.name, "/", optimizer.momentum != 0,
                                config.data.examples > 0 ? absl::StrCat("/", config.data.examples) : ""));
}

class TorchLocalTrainer : public LocalTrainer {
 public:
  struct Parts {
    std::shared_ptr<const Blueprint> blueprint;
    std::unique_ptr<ScriptModel> model;
    std::unique_ptr<BatchSource> batches;
    std::unique_ptr<Optimizer> optimizer;
    std::unique_ptr<const GradientTasks> gradients;  // in a run with epochs
    const Loss* loss = nullptr;
    int slots = 0;
    Id128 identity;
    uint64_t seed = 0;  // of the run
    uint64_t draw_seed = 0;
    std::string device;
  };

  TorchLocalTrainer(const TrainSpec& config, Parts parts)
      : config_(config),
        parts_(std::move(parts)),
        terms_(config, layout()),
        state_(parts_.model->InitialState(parts_.batches->rows())) {}

  const Layout& layout() const override { return parts_.blueprint->layout(); }
  std::vector<float> StartWeights() const override { return parts_.blueprint->StartWeights(parts_.seed); }
  int64_t samples() const override { return parts_.batches->samples(); }
  std::string device() const override { return parts_.device; }

  absl::StatusOr<TrainResult> Train(absl::Span<const float> weights, const LocalPlan& plan,
                                    const std::function<bool()>& keep_going, absl::Span<float> delta) override {
    TERSE_RETURN_IF_ERROR(CheckArguments(weights.size(), delta.size(), plan.steps));
    return CatchTorch("training", [&]() -> absl::StatusOr<TrainResult> {
      const Before before = Begin(delta);
      absl::StatusOr<TrainResult> result =
          CatchTorch("training", [&] { return RunSteps(weights, plan, keep_going, delta); });
      result.ok() ? parts_.optimizer->Commit() : Rollback(before);
      return result;
    });
  }

  absl::StatusOr<TrainResult> Gradient(const GradientPlan& plan, const std::function<bool()>& keep_going,
                                       absl::Span<float> gradient) override {
    TERSE_RETURN_IF_ERROR(CheckArguments(plan.weights.size(), gradient.size(), 1));
    if (parts_.gradients == nullptr) {
      return absl::UnimplementedError("gradients are for runs with server.epoch_length above 0");
    }
    if (!plan.snapshot.empty() && plan.snapshot.size() != gradient.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the snapshot has ", plan.snapshot.size(), " weights, and the gradient ", gradient.size()));
    }
    const BatchStream::Position before = parts_.batches->position();
    absl::StatusOr<TrainResult> result =
        CatchTorch("taking a gradient", [&] { return TakeGradient(plan, keep_going, gradient); });
    if (!result.ok()) parts_.batches->Seek(before);
    return result;
  }

  void MaskMomentum(absl::Span<const int64_t> positions) override {
    if (config_.optimizer.momentum_masking) parts_.optimizer->MaskFirstMoment(positions);
  }

  absl::StatusOr<std::string> SaveState() override {
    return CatchTorch("saving the training state", [&]() -> absl::StatusOr<std::string> {
      return EncodeTrainerState(parts_.batches->position(), parts_.optimizer->Export(), Extras(), parts_.identity);
    });
  }

  absl::Status RestoreState(absl::string_view state) override {
    const TrainerStateShape shape = {parts_.slots, layout().parameters(), ExtraSizes()};
    TERSE_ASSIGN_OR_RETURN(TrainerState decoded, DecodeTrainerState(state, parts_.identity, shape));
    const BatchStream::Position before = parts_.batches->position();
    if (!parts_.batches->Seek(decoded.position)) {
      return absl::DataLossError(absl::StrCat("the saved training state cannot be used: the client's ", samples(),
                                              " samples have no position ", decoded.position.offset));
    }
    const absl::Status status = CatchTorch("restoring the training state", [&] {
      // This comes first because it may fail: optimizer and buffers are still as they were.
      std::vector<at::Tensor> extras = ReadExtras(decoded.extras);
      TERSE_RETURN_IF_ERROR(parts_.optimizer->Import(std::move(decoded.optimizer)));
      AdoptExtras(std::move(extras));
      return absl::OkStatus();
    });
    if (!status.ok()) parts_.batches->Seek(before);
    return status;
  }

 private:
  struct Before {
    BatchStream::Position position;
    ScriptModel::State state;
    std::vector<at::Tensor> local_buffers;
  };

  // `delta` is free until the last step is done.
  Before Begin(absl::Span<float> delta) {
    parts_.optimizer->Begin(delta);
    return {parts_.batches->position(), state_, CloneAll(parts_.model->local_buffers())};
  }

  void Rollback(const Before& before) {
    parts_.optimizer->Rollback();
    parts_.batches->Seek(before.position);
    state_ = before.state;
    SetLocalBuffers(before.local_buffers);
  }

  absl::Status CheckArguments(size_t weights, size_t delta, int64_t steps) const {
    if (static_cast<int64_t>(weights) == layout().size() && weights == delta && steps >= 1) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("training wants weights and delta of ", layout().size(),
                                                   " floats and at least one step, got ", weights, ", ", delta, " and ",
                                                   steps));
  }

  absl::Status Diverged(absl::string_view what, int64_t step) const {
    return absl::FailedPreconditionError(absl::StrCat("training diverged: ", what, " is not finite at local step ",
                                                      step + 1, "; lower train.optimizer.learning_rate (now ",
                                                      config_.optimizer.learning_rate,
                                                      ") or look for damaged training data"));
  }

  absl::StatusOr<TrainResult> RunSteps(absl::Span<const float> weights, const LocalPlan& plan,
                                       const std::function<bool()>& keep_going, absl::Span<float> delta) {
    AdoptThreadCount();
    ScriptModel& model = *parts_.model;
    model.SetWeights(weights);
    model.SetTraining(true);
    const int64_t parameters = layout().parameters();
    const at::Tensor trained = model.weights().narrow(0, 0, parameters);
    const at::Tensor start = terms_.needs_start() ? trained.clone() : at::Tensor();
    double loss_sum = 0;
    for (int64_t step = 0; step < plan.steps; ++step) {
      if (keep_going && !keep_going())
        return absl::CancelledError(absl::StrCat("stopped after ", step, " local steps"));
      const float loss = StepLoss();
      if (!std::isfinite(loss)) return Diverged("the loss", step);
      loss_sum += loss;
      const at::NoGradGuard no_grad;
      terms_.Apply(start, trained, &model.gradient());
      const double rate = LearningRateAt(config_, plan.first_iteration + step);
      terms_.Decay(rate, trained);
      parts_.optimizer->Step(rate, model.gradient().data_ptr<float>(), trained.data_ptr<float>());
    }
    if (!WriteDelta(weights, delta)) return Diverged("a weight", plan.steps - 1);
    return TrainResult{static_cast<float>(loss_sum / plan.steps), plan.steps * parts_.batches->rows()};
  }

  absl::StatusOr<TrainResult> TakeGradient(const GradientPlan& plan, const std::function<bool()>& keep_going,
                                           absl::Span<float> gradient) {
    AdoptThreadCount();
    const GradientTasks& tasks = *parts_.gradients;
    if (plan.snapshot.empty()) {
      return tasks.Full(parts_.model.get(), *parts_.loss, plan.weights, keep_going, gradient);
    }
    if (keep_going && !keep_going()) return absl::CancelledError("stopped before a batch");
    return tasks.Step(parts_.model.get(), *parts_.loss, parts_.batches->Next(), plan, gradient);
  }

  // Computes the gradient of the next batch; returns its loss.
  float StepLoss() {
    const BatchStream::Position at = parts_.batches->position();
    const Batch batch = parts_.batches->Next();
    if (batch.fresh) state_ = parts_.model->InitialState(parts_.batches->rows());
    if (!parts_.blueprint->draws()) return parts_.model->LossAndGradient(batch, *parts_.loss, &state_);
    const SeededDraws draws(Random(Random(parts_.draw_seed, at.epoch).Next(), at.offset).Next());
    return parts_.model->LossAndGradient(batch, *parts_.loss, &state_);
  }

  // Writes delta = W_n - W_0; returns false, and changes nothing, when an element is not finite.
  bool WriteDelta(absl::Span<const float> before, absl::Span<float> delta) {
    const at::Tensor after = parts_.model->weights().cpu();
    const float* trained = after.data_ptr<float>();
    bool finite = true;
    for (size_t i = 0; i < delta.size(); ++i) {
      finite &= std::abs(trained[i] - before[i]) <= std::numeric_limits<float>::max();
    }
    if (!finite) return false;
    for (size_t i = 0; i < delta.size(); ++i) delta[i] = trained[i] - before[i];
    return true;
  }

  void SetLocalBuffers(const std::vector<at::Tensor>& values) {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < values.size(); ++i) parts_.model->local_buffers()[i].copy_(values[i]);
  }

  // Returns the state that the trainer keeps beside the optimizer's: the buffers that stay here, and the hidden state.
  std::vector<at::Tensor> ExtraTensors() const {
    std::vector<at::Tensor> tensors = parts_.model->local_buffers();
    tensors.insert(tensors.end(), state_.begin(), state_.end());
    return tensors;
  }
  std::vector<int64_t> ExtraSizes() const {
    std::vector<int64_t> sizes;
    for (const at::Tensor& tensor : ExtraTensors()) sizes.push_back(tensor.nbytes());
    return sizes;
  }
  std::vector<std::string> Extras() const {
    std::vector<std::string> extras;
    for (const at::Tensor& tensor : ExtraTensors()) {
      const at::Tensor host = tensor.cpu().contiguous();
      extras.emplace_back(static_cast<const char*>(host.data_ptr()), host.nbytes());
    }
    return extras;
  }
  // `extras` are as Extras made them.
  std::vector<at::Tensor> ReadExtras(std::vector<std::string>& extras) const {
    std::vector<at::Tensor> tensors = ExtraTensors();
    for (size_t i = 0; i < tensors.size(); ++i) {
      const at::Tensor host = at::from_blob(extras[i].data(), tensors[i].sizes(), tensors[i].scalar_type());
      tensors[i] = host.to(tensors[i].device(), /*non_blocking=*/false, /*copy=*/true);
    }
    return tensors;
  }
  void AdoptExtras(std::vector<at::Tensor> tensors) {
    const size_t buffers = tensors.size() - state_.size();
    state_.assign(tensors.begin() + buffers, tensors.end());
    tensors.resize(buffers);
    SetLocalBuffers(tensors);
  }

  const TrainSpec config_;
  const Parts parts_;
  const GradientTerms terms_;
  ScriptModel::State state_;
};

absl::Status CheckTrainingData(const Blueprint& blueprint, const Dataset& dataset) {
  if (dataset.train_count() > 0) return blueprint.CheckFit(dataset);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no training data: ", dataset.no_train.empty() ? dataset.description : dataset.no_train));
}

absl::StatusOr<const Loss*> FittingLoss(const RunConfig& config, const Blueprint& blueprint, const Dataset& dataset) {
  const auto loss = FindLoss(config.train.loss, dataset.task, dataset.classes, blueprint.outputs());
  if (loss.ok()) return loss;
  return absl::Status(loss.status().code(), absl::StrCat(loss.status().message(), "; ", DataKind(dataset)));
}

// A client with several files of text reads them as one.
std::shared_ptr<const Text> Joined(const Text& text, const std::vector<DataRange>& ranges) {
  auto joined = std::make_shared<Text>();
  for (const DataRange& range : ranges) {
    joined->symbols.insert(joined->symbols.end(), text.symbols.begin() + range.begin, text.symbols.begin() + range.end);
  }
  return joined;
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeBatches(const RunConfig& config, const Shard& shard,
                                                         std::shared_ptr<const Dataset> dataset, c10::Device device) {
  if (dataset->task == Task::kText) {
    TERSE_ASSIGN_OR_RETURN(const std::vector<DataRange> ranges,
                           PartitionText(config.data, *dataset, shard, config.seed));
    std::shared_ptr<const Text> text = ranges.size() == 1 ? std::shared_ptr<const Text>(dataset, &dataset->train_text)
                                                          : Joined(dataset->train_text, ranges);
    const DataRange range = ranges.size() == 1 ? ranges[0] : DataRange{0, text->count()};
    return MakeTextBatches(std::move(text), range, config.train.batch_size, config.train.unroll, device);
  }
  TERSE_ASSIGN_OR_RETURN(std::vector<uint32_t> examples, PartitionExamples(config.data, *dataset, shard, config.seed));
  return MakeExampleBatches(std::move(dataset), std::move(examples), config.data, config.train.batch_size, config.seed,
                            shard.index, device);
}

// Returns null in a run without epochs.
absl::StatusOr<std::unique_ptr<const GradientTasks>> MakeGradientTasks(const RunConfig& config, const Shard& shard,
                                                                       const Layout& layout,
                                                                       std::shared_ptr<const Dataset> dataset,
                                                                       c10::Device device) {
  if (!HasEpochs(config)) return nullptr;
  if (dataset->task == Task::kText || layout.parameters() != layout.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "server.optimizer = '", config.server.name,
        "' takes gradients over single examples, of parameters alone: no text, and model.buffers = 'local'"));
  }
  TERSE_ASSIGN_OR_RETURN(std::vector<uint32_t> examples, PartitionExamples(config.data, *dataset, shard, config.seed));
  return std::make_unique<const GradientTasks>(config, layout, std::move(dataset), std::move(examples), device);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalTrainer>> MakeLocalTrainer(const RunConfig& config, const Shard& shard,
                                                               std::shared_ptr<const Blueprint> blueprint,
                                                               std::shared_ptr<const Dataset> dataset,
                                                               absl::string_view device) {
  TERSE_RETURN_IF_ERROR(CheckTrainingData(*blueprint, *dataset));
  TorchLocalTrainer::Parts parts;
  TERSE_ASSIGN_OR_RETURN(parts.loss, FittingLoss(config, *blueprint, *dataset));
  TERSE_ASSIGN_OR_RETURN(parts.slots, OptimizerSlots(config.train.optimizer));
  parts.identity = StateIdentity(config, shard, blueprint->layout(), *dataset);
  parts.seed = config.seed;
  parts.draw_seed = Random(config.seed ^ kDropoutSalt, shard.index).Next();
  return CatchTorch("preparing the model", [&]() -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
    TERSE_ASSIGN_OR_RETURN(const c10::Device where, ChooseDevice(device));
    if (blueprint->outputs() == 0) TERSE_RETURN_IF_ERROR(TryTrainingData(config, *blueprint, dataset, where));
    TERSE_ASSIGN_OR_RETURN(parts.gradients, MakeGradientTasks(config, shard, blueprint->layout(), dataset, where));
    TERSE_ASSIGN_OR_RETURN(parts.batches, MakeBatches(config, shard, std::move(dataset), where));
    const int64_t size = blueprint->layout().parameters();
    TERSE_ASSIGN_OR_RETURN(parts.optimizer, where.is_cpu() ? MakeHostOptimizer(config.train.optimizer, size)
                                                           : MakeTensorOptimizer(config.train.optimizer, size, where));
    parts.model = blueprint->Make(where);
    parts.device = where.str();
    parts.blueprint = std::move(blueprint);
    return std::make_unique<TorchLocalTrainer>(config.train, std::move(parts));
  });
}

namespace {

// The data set of the last run, which the next one often shares.
class LoadedData {
 public:
  absl::StatusOr<std::shared_ptr<const Dataset>> Load(const DataSpec& spec, const std::string& data_dir) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (dataset_ == nullptr || key_ != DatasetKey(spec)) {
      TERSE_ASSIGN_OR_RETURN(Dataset dataset, LoadDataset(spec, data_dir));
      key_ = DatasetKey(spec);
      dataset_ = std::make_shared<const Dataset>(std::move(dataset));
    }
    return dataset_;
  }

 private:
  std::mutex mutex_;
  std::string key_;
  std::shared_ptr<const Dataset> dataset_;
};

}  // namespace

absl::StatusOr<TrainerFactory> MakeTrainerFactory(const std::string& data_dir, const std::string& device) {
  TERSE_RETURN_IF_ERROR(ChooseDevice(device).status());
  return [data_dir, device, loaded = std::make_shared<LoadedData>()](
             const RunConfig& config, const Shard& shard,
             absl::string_view module) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
    TERSE_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> dataset, loaded->Load(config.data, data_dir));
    TERSE_ASSIGN_OR_RETURN(std::shared_ptr<const Blueprint> blueprint, MakeBlueprint(config.model, module));
    return MakeLocalTrainer(config, shard, std::move(blueprint), std::move(dataset), device);
  };
}

}  // namespace terse
