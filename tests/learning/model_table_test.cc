#include "learning/models/model_table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
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

struct Size {
  const char* name;
  int64_t parameters;
  int64_t buffers;
};

// Sizes with the papers' data. SBC does not state them; its models are those of the programs that it names. 58,322,314
// are the 58M of the report on quantized SGD; 48,673,040 and 3,320,385 are the 194.69 MB and 13.28 MB of MCGQ's tables;
// 4 * 11,173,962 with ten classes are the 44 MB of double quantization.
constexpr Size kSizes[] = {
    {"lenet5_caffe", 431080, 0},  {"alexnet", 58322314, 0},      {"resnet18", 11220132, 9600},
    {"resnet32", 466970, 2272},   {"resnet50", 25549352, 45440}, {"resnet110", 1730714, 8288},
    {"word_lstm", 19775200, 0},   {"char_lstm", 680898, 0},      {"ptb_lstm_1500", 48673040, 0},
    {"char_rnn_512", 3320385, 0}, {"transformer", 6384128, 0},   {"transformer_small", 116480, 0},
    {"mqgrad_cnn", 16224586, 0},  {"logistic", 124, 0},          {"perceptron", 79510, 0},
};

TEST(ModelTableTest, ModelsHaveThePapersSizes) {
  std::vector<std::string> names;
  for (const Size& size : kSizes) {
    names.push_back(size.name);
    EXPECT_EQ(FindModel({size.name}).value().name, size.name);
    const Layout layout = ModelLayout({size.name}).value();
    EXPECT_EQ(layout.parameters(), size.parameters) << size.name;
    EXPECT_EQ(layout.size() - layout.parameters(), size.buffers) << size.name;
    EXPECT_EQ(ModelLayout({size.name}, /*with_buffers=*/false)->size(), size.parameters) << size.name;
  }
  EXPECT_EQ(names, ModelNames());
}

TEST(ModelTableTest, SettingsChangeTheWidthOfTheOutput) {
  const auto parameters = [](const std::string& name, int64_t classes, int64_t inputs) {
    ModelSpec spec = {name};
    spec.classes = classes;
    spec.inputs = inputs;
    return ModelLayout(spec)->parameters();
  };
  EXPECT_EQ(parameters("resnet18", 10, 0), 11173962);
  EXPECT_EQ(parameters("lenet5_caffe", 62, 0), 431080 + 52 * 501);
  EXPECT_EQ(parameters("char_lstm", 65, 0), 680898 - 33 * 401);
  EXPECT_EQ(parameters("logistic", 0, 22), 23);
  EXPECT_EQ(parameters("perceptron", 2, 5), 5 * 100 + 100 + 2 * 100 + 2);
}

TEST(ModelTableTest, BuffersAreBehindTheParametersAndChangeNoStart) {
  const Layout layout = ModelLayout({"resnet32"}).value();
  const std::vector<float> with = InitialWeights({"resnet32"}, 3).value();
  const std::vector<float> without = InitialWeights({"resnet32"}, 3, /*with_buffers=*/false).value();
  ASSERT_EQ(without.size(), layout.parameters());
  EXPECT_TRUE(std::equal(without.begin(), without.end(), with.begin()));
  for (const TensorSpec& tensor : layout.tensors()) {
    if (tensor.kind != TensorKind::kBuffer) continue;
    const float expected = absl::EndsWith(tensor.name, "running_var") ? 1.0f : 0.0f;
    for (int64_t i = 0; i < tensor.size; ++i) EXPECT_EQ(with[tensor.offset + i], expected) << tensor.name;
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
