// A small set of rendered digits and a run over it, shared by the tests that train.
#ifndef TERSE_TESTS_LEARNING_TRAINING_FIXTURE_H_
#define TERSE_TESTS_LEARNING_TRAINING_FIXTURE_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/run_config.h"
#include "core/status.h"
#include "core/trainer.h"
#include "learning/blueprint.h"
#include "learning/datasets/glyph_digits.h"
#include "learning/evaluator.h"
#include "learning/local_trainer.h"
#include "learning/models/model_table.h"
#include "learning/runtime.h"

namespace terse {

inline std::shared_ptr<const Dataset> SmallGlyphs() {
  static const auto dataset = std::make_shared<const Dataset>(GlyphDigits({6000, 1000, 28}));
  return dataset;
}

inline RunConfig AdamRun(int64_t batch_size) {
  RunConfig config;
  config.seed = 1;
  config.model.name = "lenet5_caffe";
  config.data.name = "mnist";
  config.train.batch_size = batch_size;
  config.train.optimizer = {"adam", 0.001, 0, 0.9, 0.999, 1e-8, false};
  return config;
}

inline RunConfig SgdRun(int64_t batch_size, double rate, double momentum) {
  RunConfig config = AdamRun(batch_size);
  config.train.optimizer = {"sgd", rate, momentum, 0, 0, 0, false};
  return config;
}

inline absl::StatusOr<std::unique_ptr<LocalTrainer>> TrainerOn(std::shared_ptr<const Dataset> dataset,
                                                               const RunConfig& config, const Shard& shard,
                                                               const std::string& device = "cpu") {
  ConfigureThreads(1);
  TERSE_ASSIGN_OR_RETURN(std::shared_ptr<const Blueprint> blueprint, MakeBlueprint(config.model));
  return MakeLocalTrainer(config, shard, std::move(blueprint), std::move(dataset), device);
}

inline absl::StatusOr<std::unique_ptr<Evaluator>> EvaluatorOn(std::shared_ptr<const Dataset> dataset,
                                                              const RunConfig& config) {
  TERSE_ASSIGN_OR_RETURN(std::shared_ptr<const Blueprint> blueprint, MakeBlueprint(config.model));
  return MakeEvaluator(config, std::move(blueprint), std::move(dataset), "cpu");
}

inline std::unique_ptr<LocalTrainer> MakeTrainer(const RunConfig& config) {
  return TrainerOn(SmallGlyphs(), config, {0, 2}).value();
}

// One round: trains and adds the delta to the weights. Returns the mean loss.
inline float TrainInto(LocalTrainer* trainer, int64_t steps, std::vector<float>* weights) {
  std::vector<float> delta(weights->size());
  const float loss = trainer->Train(*weights, {steps}, nullptr, absl::MakeSpan(delta)).value().mean_loss;
  for (size_t i = 0; i < delta.size(); ++i) (*weights)[i] += delta[i];
  return loss;
}

}  // namespace terse

#endif  // TERSE_TESTS_LEARNING_TRAINING_FIXTURE_H_
