#include "learning/models/model_table.h"

#include <cmath>

#include "core/id128.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ModelTableTest, Lenet5CaffeHasTheTutorialsParameters) {
  const Layout layout = ModelLayout({"lenet5_caffe"}).value();
  EXPECT_EQ(layout.size(), 431080);
  ASSERT_EQ(layout.tensors().size(), 8u);
  EXPECT_EQ(layout.tensors()[0].name, "conv1.weight");
  EXPECT_THAT(layout.tensors()[0].shape, ElementsAre(20, 1, 5, 5));
  EXPECT_EQ(layout.tensors()[4].name, "ip1.weight");
  EXPECT_THAT(layout.tensors()[4].shape, ElementsAre(500, 800));
  EXPECT_EQ(layout.tensors()[4].offset, 20 * 25 + 20 + 50 * 500 + 50);
}

TEST(ModelTableTest, EveryRowMakesAModelOfItsName) {
  for (const std::string& name : ModelNames()) {
    const ModelDefinition model = FindModel({name}).value();
    EXPECT_EQ(model.name, name);
    EXPECT_EQ(InitialWeights({name}, 1).value().size(), ModelLayout({name}).value().size());
  }
}

TEST(ModelTableTest, UnknownModelNamesTheKnownOnes) {
  const absl::Status status = ModelLayout({"lenet6"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("lenet5_caffe"));
  EXPECT_FALSE(InitialWeights({"lenet6"}, 1).ok());
}

TEST(ModelTableTest, WeightsStartByTheXavierRule) {
  const Layout layout = ModelLayout({"lenet5_caffe"}).value();
  const std::vector<float> weights = InitialWeights({"lenet5_caffe"}, 7).value();
  for (const TensorSpec& tensor : layout.tensors()) {
    const bool bias = tensor.shape.size() == 1;
    const double bound = bias ? 0 : std::sqrt(3.0 * tensor.shape[0] / tensor.size);
    double largest = 0, sum2 = 0;
    for (int64_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(weights[i])));
      sum2 += static_cast<double>(weights[i]) * weights[i];
    }
    EXPECT_LE(largest, bound * (1 + 1e-7)) << tensor.name;
    // A uniform distribution's variance is a third of its bound squared.
    EXPECT_NEAR(sum2 / tensor.size, bound * bound / 3, 0.15 * bound * bound / 3) << tensor.name;
  }
}

TEST(ModelTableTest, WeightsDependOnTheSeedAlone) {
  const std::vector<float> weights = InitialWeights({"lenet5_caffe"}, 1).value();
  EXPECT_EQ(weights, InitialWeights({"lenet5_caffe"}, 1).value());
  EXPECT_NE(weights, InitialWeights({"lenet5_caffe"}, 2).value());
  // A change of this hash breaks the resumption of every existing run.
  EXPECT_EQ(HashWeights(weights).ToHex(), "8683713c85e331b09346d85acd4b1a51");
}

}  // namespace
}  // namespace terse
