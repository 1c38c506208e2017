// Tests the state that trainers keep beside the optimizer's: the place of their dropout, buffers that stay, the hidden
// state of a text. All of it is saved, restored and rolled back.
#include "gtest/gtest.h"
#include "tests/learning/training_fixture.h"
#include "tests/learning/user_modules.h"

namespace terse {
namespace {

struct Kind {
  const char* name;
  ModelSpec model;
  std::string (*module)();
  std::shared_ptr<const Dataset> (*dataset)();
  int64_t batch_size;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

ModelSpec Named(const std::string& name, const std::string& buffers = "averaged") {
  ModelSpec spec = {name};
  spec.buffers = buffers;
  return spec;
}

std::string NoModule() { return ""; }
std::string NormalisingModule() { return Saved(Normalising()); }
std::shared_ptr<const Dataset> CharText() { return TextData(98); }

std::shared_ptr<const Dataset> SmallPictures() {
  auto dataset = std::make_shared<Dataset>();
  dataset->description = "noise";
  dataset->classes = 10;
  std::vector<uint8_t> pixels(20 * 3 * 32 * 32), labels(20);
  Random random(1);
  for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(random.Below(256));
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = i % 10;
  dataset->train = {Column::FromBytes({3, 32, 32}, pixels), Column::FromBytes({}, labels)};
  return dataset;
}

const Kind kKinds[] = {
    {"dropout_and_hidden_state", Named("char_lstm"), NoModule, CharText, 3},
    {"local_buffers", Named("resnet32", "local"), NoModule, SmallPictures, 4},
    {"averaged_buffers", Named("resnet32"), NoModule, SmallPictures, 4},
    {"module_with_local_buffers", Named("torchscript", "local"), NormalisingModule, ClusterData, 8},
    {"module_with_averaged_buffers", Named("torchscript"), NormalisingModule, ClusterData, 8},
};

class TrainerExtrasTest : public ::testing::TestWithParam<Kind> {
 protected:
  TrainerExtrasTest() : blueprint_(MakeBlueprint(GetParam().model, GetParam().module()).value()) {
    ConfigureThreads(1);
    config_ = SgdRun(GetParam().batch_size, 0.05, 0.9);
    config_.model = GetParam().model;
    config_.data.partition = "all";
    config_.train.unroll = 12;
    if (dataset_->train.features.element() == Element::kByte && dataset_->task == Task::kClasses) {
      config_.data.augment = "pad_crop_flip";
    }
  }

  std::unique_ptr<LocalTrainer> Make() const {
    return MakeLocalTrainer(config_, {0, 1}, blueprint_, dataset_, "cpu").value();
  }

  const std::shared_ptr<const Dataset> dataset_ = GetParam().dataset();
  const std::shared_ptr<const Blueprint> blueprint_;
  RunConfig config_;
};

INSTANTIATE_TEST_SUITE_P(All, TrainerExtrasTest, ::testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(TrainerExtrasTest, RestoredStateContinuesBitForBit) {
  const auto trainer = Make(), restored = Make(), fresh = Make();
  std::vector<float> weights = blueprint_->StartWeights(1);
  TrainInto(trainer.get(), 3, &weights);
  ASSERT_TRUE(restored->RestoreState(trainer->SaveState().value()).ok());
  std::vector<float> other = weights, third = weights;
  TrainInto(trainer.get(), 3, &weights);
  TrainInto(restored.get(), 3, &other);
  TrainInto(fresh.get(), 3, &third);
  EXPECT_EQ(weights, other);
  EXPECT_EQ(trainer->SaveState().value(), restored->SaveState().value());
  EXPECT_NE(weights, third);
}

// One call of six steps is two of three, when nothing happens between them.
TEST_P(TrainerExtrasTest, CallsJoinWithoutASeam) {
  const auto one = Make(), two = Make();
  std::vector<float> weights = blueprint_->StartWeights(1), other = weights;
  TrainInto(one.get(), 6, &weights);
  TrainInto(two.get(), 3, &other);
  TrainInto(two.get(), 3, &other);
  for (size_t i = 0; i < weights.size(); ++i) ASSERT_NEAR(weights[i], other[i], 1e-5) << i;
}

TEST_P(TrainerExtrasTest, ACancelledCallLeavesNoTrace) {
  const auto trainer = Make(), undisturbed = Make();
  std::vector<float> weights = blueprint_->StartWeights(1);
  TrainInto(trainer.get(), 2, &weights);
  const std::string before = trainer->SaveState().value();
  ASSERT_TRUE(undisturbed->RestoreState(before).ok());
  std::vector<float> delta(weights.size());
  int asked = 0;
  const auto result = trainer->Train(
      weights, {5}, [&] { return asked++ < 2; }, absl::MakeSpan(delta));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(trainer->SaveState().value(), before);
  std::vector<float> other = weights;
  TrainInto(trainer.get(), 2, &weights);
  TrainInto(undisturbed.get(), 2, &other);
  EXPECT_EQ(weights, other);
}

}  // namespace
}  // namespace terse
