// The facts about models and data sets in proto/run_config_fit agree with those of learning.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "learning/datasets/dataset_table.h"
#include "learning/models/model_table.h"
#include "proto/run_config_fit.h"

namespace terse {
namespace {

struct KnownData {
  const char* name;
  bool is_text;
  std::vector<int64_t> shape;
  int64_t classes;
};

int64_t Numbers(const std::vector<int64_t>& shape) {
  int64_t numbers = 1;
  for (const int64_t each : shape) numbers *= each;
  return numbers;
}

// As the blueprint of a built-in model decides (learning/blueprint.cc), but for a width that nobody asked for.
bool Fits(const ModelDefinition& model, const KnownData& data) {
  const bool reads_text = model.input == Element::kInt32;
  if (reads_text || data.is_text) return reads_text == data.is_text;
  const bool shaped = model.input_shape.size() == 1 ? Numbers(model.input_shape) == Numbers(data.shape)
                                                    : model.input_shape == data.shape;
  return shaped && (data.classes == model.classes || (model.classes == 1 && data.classes == 2));
}

TEST(RunFileFit, AgreesWithTheModels) {
  const std::vector<KnownData> known = {{"mnist", false, {1, 28, 28}, 10},
                                        {"cifar10", false, {3, 32, 32}, 10},
                                        {"a9a", false, {123}, 2},
                                        {"ptb", true, {}, 0}};
  for (const std::string& name : ModelNames()) {
    for (const KnownData& data : known) {
      v1::RunConfig config;
      config.mutable_model()->set_name(name);
      config.mutable_data()->set_name(data.name);
      config.mutable_train()->set_loss("auto");
      ConfigViolations violations;
      CheckFit(config, &violations);
      ModelSpec spec;
      spec.name = name;
      EXPECT_EQ(violations.empty(), Fits(FindModel(spec).value(), data)) << name << " on " << data.name;
    }
  }
}

v1::RunConfig WithLoss(const std::string& data, const char* loss) {
  v1::RunConfig config;
  config.mutable_data()->set_name(data);
  config.mutable_train()->set_loss(loss);
  return config;
}

bool IsRefused(const v1::RunConfig& config) {
  ConfigViolations violations;
  CheckFit(config, &violations);
  return !violations.empty();
}

// One that it does not know would pass with everything.
TEST(RunFileFit, KnowsEveryDataSetAndModel) {
  for (const std::string& name : DatasetNames()) {
    EXPECT_NE(IsRefused(WithLoss(name, "cross_entropy")), IsRefused(WithLoss(name, "lm_cross_entropy"))) << name;
  }
  for (const std::string& name : ModelNames()) {
    v1::RunConfig on_text = WithLoss("ptb", "auto"), on_images = WithLoss("images", "auto");
    on_text.mutable_model()->set_name(name);
    on_images.mutable_model()->set_name(name);
    EXPECT_NE(IsRefused(on_text), IsRefused(on_images)) << name;
  }
}

}  // namespace
}  // namespace terse
