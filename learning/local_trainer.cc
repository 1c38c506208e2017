#include "learning/local_trainer.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "learning/batch_stream.h"
#include "learning/datasets/dataset_table.h"
#include "learning/models/model_table.h"
#include "learning/optimizers.h"
#include "learning/partition.h"
#include "learning/script_model.h"
#include "learning/tensor_optimizer.h"
#include "learning/torch_edge.h"
#include "learning/trainer_state.h"

namespace terse {
namespace {

// What a saved state belongs to; another identity is refused at RestoreState.
Id128 StateIdentity(const RunConfig& config, const Shard& shard, const Layout& layout, const Examples& train) {
  const OptimizerSpec& optimizer = config.train.optimizer;
  const absl::string_view labels(reinterpret_cast<const char*>(train.labels.data()), train.labels.size());
  return HashBytes(absl::StrCat(layout.Hash().ToBytes(), HashBytes(labels).ToBytes(), train.pixels(), "/",
                                config.model.name, "/", config.data.name, "/", config.data.partition, "/", shard.index,
                                "/", shard.count, "/", config.seed, "/", config.train.batch_size, "/", optimizer.name,
                                "/", optimizer.momentum != 0));
}

class TorchLocalTrainer : public LocalTrainer {
 public:
  TorchLocalTrainer(const RunConfig& config, Layout layout, const ModelDefinition& definition, c10::Device device,
                    BatchStream batches, std::unique_ptr<Optimizer> optimizer, int slots,
                    std::shared_ptr<const Dataset> dataset, Id128 identity)
      : config_(config.train),
        layout_(std::move(layout)),
        identity_(identity),
        slots_(slots),
        dataset_(std::move(dataset)),
        model_(definition, layout_, device),
        batches_(std::move(batches)),
        optimizer_(std::move(optimizer)) {}

  const Layout& layout() const override { return layout_; }
  int64_t samples() const override { return batches_.size(); }

  absl::StatusOr<TrainResult> Train(absl::Span<const float> weights, int64_t steps,
                                    const std::function<bool()>& keep_going, absl::Span<float> delta) override {
    TERSE_RETURN_IF_ERROR(CheckArguments(weights.size(), delta.size(), steps));
    const BatchStream::Position start = batches_.position();
    optimizer_->Begin();
    absl::StatusOr<TrainResult> result =
        CatchTorch("training", [&] { return RunSteps(weights, steps, keep_going, delta); });
    if (result.ok()) {
      optimizer_->Commit();
    } else {
      optimizer_->Rollback();
      batches_.Seek(start);
    }
    return result;
  }

  void MaskMomentum(absl::Span<const uint32_t> positions) override {
    if (config_.optimizer.momentum_masking) optimizer_->MaskFirstMoment(positions);
  }

  absl::StatusOr<std::string> SaveState() override {
    return CatchTorch("saving the training state", [&]() -> absl::StatusOr<std::string> {
      return EncodeTrainerState({batches_.position(), optimizer_->Export()}, identity_);
    });
  }

  absl::Status RestoreState(absl::string_view state) override {
    TERSE_ASSIGN_OR_RETURN(TrainerState decoded, DecodeTrainerState(state, identity_, slots_, layout_.size()));
    const BatchStream::Position before = batches_.position();
    if (!batches_.Seek(decoded.position)) {
      return absl::DataLossError(absl::StrCat("the saved training state cannot be used: the shard of ", batches_.size(),
                                              " examples has no position ", decoded.position.offset));
    }
    const absl::Status status =
        CatchTorch("restoring the training state", [&] { return optimizer_->Import(std::move(decoded.optimizer)); });
    if (!status.ok()) batches_.Seek(before);
    return status;
  }

 private:
  absl::Status CheckArguments(size_t weights, size_t delta, int64_t steps) const {
    if (static_cast<int64_t>(weights) == layout_.size() && weights == delta && steps >= 1) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("training wants weights and delta of ", layout_.size(),
                                                   " floats and at least one step, got ", weights, ", ", delta, " and ",
                                                   steps));
  }

  absl::Status Diverged(absl::string_view what, int64_t step) const {
    return absl::FailedPreconditionError(absl::StrCat("training diverged: ", what, " is not finite at local step ",
                                                      step + 1, "; lower train.optimizer.learning_rate (now ",
                                                      config_.optimizer.learning_rate,
                                                      ") or look for damaged training data"));
  }

  absl::StatusOr<TrainResult> RunSteps(absl::Span<const float> weights, int64_t steps,
                                       const std::function<bool()>& keep_going, absl::Span<float> delta) {
    AdoptThreadCount();
    model_.SetWeights(weights);
    double loss_sum = 0;
    for (int64_t step = 0; step < steps; ++step) {
      if (keep_going && !keep_going())
        return absl::CancelledError(absl::StrCat("stopped after ", step, " local steps"));
      const absl::Span<const uint32_t> batch = batches_.Next();
      const float loss =
          model_.LossAndGradient(model_.Images(dataset_->train, batch), model_.Labels(dataset_->train, batch));
      if (!std::isfinite(loss)) return Diverged("the loss", step);
      loss_sum += loss;
      optimizer_->Step(model_.gradient().data_ptr<float>(), model_.weights().data_ptr<float>());
    }
    if (!WriteDelta(weights, delta)) return Diverged("a weight", steps - 1);
    return TrainResult{static_cast<float>(loss_sum / steps), steps * config_.batch_size};
  }

  // delta = W_n - W_0; false when one is not finite.
  bool WriteDelta(absl::Span<const float> before, absl::Span<float> delta) {
    const at::Tensor after = model_.weights().cpu();
    const float* trained = after.data_ptr<float>();
    bool finite = true;
    for (size_t i = 0; i < delta.size(); ++i) {
      delta[i] = trained[i] - before[i];
      finite &= std::abs(delta[i]) <= std::numeric_limits<float>::max();
    }
    return finite;
  }

  const TrainSpec config_;
  const Layout layout_;
  const Id128 identity_;
  const int slots_;
  const std::shared_ptr<const Dataset> dataset_;
  ScriptModel model_;
  BatchStream batches_;
  const std::unique_ptr<Optimizer> optimizer_;
};

absl::Status CheckFit(const RunConfig& config, const ModelDefinition& model, const Dataset& dataset) {
  const std::vector<int64_t> shape = {1, dataset.train.rows, dataset.train.columns};
  if (model.input_shape != shape || model.classes < dataset.classes) {
    return absl::InvalidArgumentError(absl::StrCat("model '", model.name, "' does not take the images of '",
                                                   config.data.name, "'; choose a model and a data set that fit"));
  }
  if (config.train.batch_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("train.batch_size is ", config.train.batch_size, "; use 1 or more"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalTrainer>> MakeLocalTrainer(const RunConfig& config, const Shard& shard,
                                                               std::shared_ptr<const Dataset> dataset,
                                                               absl::string_view device) {
  TERSE_ASSIGN_OR_RETURN(const ModelDefinition definition, FindModel(config.model.name));
  TERSE_ASSIGN_OR_RETURN(Layout layout, Layout::Create(definition.parameters));
  TERSE_RETURN_IF_ERROR(CheckFit(config, definition, *dataset));
  TERSE_ASSIGN_OR_RETURN(std::vector<uint32_t> examples,
                         PartitionExamples(config.data.partition, dataset->train.count(), shard, config.seed));
  TERSE_ASSIGN_OR_RETURN(const int slots, OptimizerSlots(config.train.optimizer));
  BatchStream batches(std::move(examples), config.train.batch_size, config.seed, shard.index);
  const Id128 identity = StateIdentity(config, shard, layout, dataset->train);
  return CatchTorch("preparing the model", [&]() -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
    TERSE_ASSIGN_OR_RETURN(const c10::Device where, ChooseDevice(device));
    TERSE_ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> optimizer,
                           where.is_cpu() ? MakeHostOptimizer(config.train.optimizer, layout.size())
                                          : MakeTensorOptimizer(config.train.optimizer, layout.size(), where));
    return std::make_unique<TorchLocalTrainer>(config, std::move(layout), definition, where, std::move(batches),
                                               std::move(optimizer), slots, std::move(dataset), identity);
  });
}

TrainerFactory MakeTrainerFactory(const std::string& data_dir, const std::string& device) {
  struct Loaded {
    std::string name;
    std::shared_ptr<const Dataset> dataset;
  };
  return [data_dir, device, loaded = std::make_shared<Loaded>()](
             const RunConfig& config, const Shard& shard) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
    if (loaded->dataset == nullptr || loaded->name != config.data.name) {
      TERSE_ASSIGN_OR_RETURN(Dataset dataset, LoadDataset(config.data, data_dir));
      *loaded = {config.data.name, std::make_shared<const Dataset>(std::move(dataset))};
    }
    return MakeLocalTrainer(config, shard, loaded->dataset, device);
  };
}

}  // namespace terse
