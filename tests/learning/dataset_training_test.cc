// Each format from its file, through a trainer's factory, to a step and an evaluation.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "learning/datasets/dataset_table.h"
#include "learning/evaluator.h"
#include "learning/local_trainer.h"
#include "learning/runtime.h"
#include "tests/learning/temp_folder.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

struct Format {
  const char* name;
  std::function<void(const TempFolder&)> write;
  std::function<void(RunConfig*)> configure;
};

void PrintTo(const Format& format, std::ostream* out) { *out << format.name; }

void SaveArrays(const char* kind, const TempFolder& folder) {
  const std::string command =
      absl::StrCat("/usr/bin/python3 ", InSource("tests/learning/save_arrays.py"), " ", kind, " ", folder.path());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

void Perceptron(RunConfig* config, const char* file, int64_t inputs, int64_t classes) {
  config->data.train = config->data.test = file;
  config->model = {"perceptron"};
  config->model.inputs = inputs;
  config->model.classes = classes;
}

const Format kFormats[] = {
    {"csv",
     [](const TempFolder& folder) { folder.Write("a.csv", "size,kind,class\n1.5,x,no\n-2,y,yes\n0.25,x,yes\n"); },
     [](RunConfig* config) {
       Perceptron(config, "a.csv", 3, 2);
       config->data.columns = {"size:number", "kind:category=x|y", "class:class=no|yes"};
     }},
    {"libsvm", [](const TempFolder& folder) { folder.Write("a.libsvm", "+1 1:0.5 3:2\n-1 2:1\n+1 3:-1\n"); },
     [](RunConfig* config) {
       config->data.train = config->data.test = "a.libsvm";
       config->model = {"logistic"};
       config->model.inputs = 3;
     }},
    {"numpy", [](const TempFolder& folder) { SaveArrays("numpy", folder); },
     [](RunConfig* config) { Perceptron(config, "f4.npz", 6, 4); }},
    {"tensors", [](const TempFolder& folder) { SaveArrays("torch", folder); },
     [](RunConfig* config) { Perceptron(config, "u1.pt", 6, 4); }},
    {"images",
     [](const TempFolder& folder) {
       for (const char* image : {"bad/1.pgm", "bad/2.pgm", "good/1.pgm"}) {
         folder.Write(absl::StrCat("set/", image), absl::StrCat("P5 5 4 255\n", std::string(20, image[0]), ""));
       }
     },
     [](RunConfig* config) {
       Perceptron(config, "set", 20, 2);
       config->data.augment = "pad_crop_flip";
       config->data.normalize = "standardize";
     }},
    {"text", [](const TempFolder& folder) { folder.Write("a.txt", "to be or not to be, that is the question"); },
     [](RunConfig* config) {
       config->data.train = config->data.test = "a.txt";
       config->model = {"char_rnn_512"};
       config->model.classes = 20;
       config->train.unroll = 5;
     }},
};

class DatasetTrainingTest : public ::testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(All, DatasetTrainingTest, ::testing::ValuesIn(kFormats),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(DatasetTrainingTest, TrainsAStepAndIsScored) {
  ConfigureThreads(1);
  TempFolder folder;
  GetParam().write(folder);
  RunConfig config;
  config.seed = 1;
  config.data.name = GetParam().name;
  config.data.partition = "all";
  config.train.batch_size = 2;
  config.train.optimizer = {"sgd", 0.1};
  GetParam().configure(&config);
  const auto trainer = MakeTrainerFactory(folder.path(), "cpu").value()(config, {0, 1}, "").value();
  const auto blueprint = MakeBlueprint(config.model).value();
  const std::vector<float> weights = blueprint->StartWeights(1);
  std::vector<float> delta(weights.size());
  const TrainResult result = trainer->Train(weights, {1}, nullptr, absl::MakeSpan(delta)).value();
  EXPECT_GT(result.mean_loss, 0);
  EXPECT_EQ(result.samples, 2);
  double moved = 0;
  for (const float change : delta) moved += std::abs(change);
  EXPECT_GT(moved, 0);
  const auto dataset = std::make_shared<const Dataset>(LoadDataset(config.data, folder.path()).value());
  const Evaluation score = MakeEvaluator(config, blueprint, dataset, "cpu").value()->Evaluate(weights).value();
  EXPECT_GT(score.loss, 0);
  EXPECT_LE(score.accuracy, 1);
}

}  // namespace
}  // namespace terse
