// Data that a model takes, and data that are refused with file and example.
#include "learning/data_fit.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learning/models/model_table.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

ModelDefinition Model(const std::string& name, int64_t classes = 0, int64_t inputs = 0) {
  ModelSpec spec = {name};
  spec.classes = classes;
  spec.inputs = inputs;
  return FindModel(spec).value();
}

// Two files of numbers; the labels are whole numbers.
Dataset Labelled(std::vector<int64_t> labels, int64_t features = 2) {
  Dataset dataset;
  dataset.description = "CSV rows from /data";
  for (const int64_t label : labels) dataset.classes = std::max(dataset.classes, label + 1);
  dataset.train = {Column::FromFloats({features}, std::vector<float>(labels.size() * features, 0.5f)),
                   Column::FromInt64s({}, labels),
                   {{"/data/a.csv", 0}, {"/data/b.csv", 2}}};
  return dataset;
}

Dataset Valued(std::vector<int64_t> shape, int64_t count) {
  Dataset dataset;
  dataset.task = Task::kValues;
  int64_t each = 1;
  for (const int64_t size : shape) each *= size;
  dataset.train = {Column::FromFloats({2}, std::vector<float>(count * 2, 0.5f)),
                   Column::FromFloats(std::move(shape), std::vector<float>(count * each, 1.5f)),
                   {{"/data/x.npz", 0}}};
  return dataset;
}

Dataset Written(int64_t symbols) {
  Dataset dataset;
  dataset.description = "9 words from /data/a.txt, 9 different symbols";
  dataset.task = Task::kText;
  dataset.classes = symbols;
  dataset.train_text.symbols = {0, 1, 2};
  return dataset;
}

std::string Message(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(DataFitTest, DataThatFitsIsTaken) {
  EXPECT_TRUE(CheckInput(Model("perceptron", 3, 2), Labelled({0, 1, 2})).ok());
  EXPECT_TRUE(CheckInput(Model("char_lstm"), Written(9)).ok());
  EXPECT_TRUE(CheckOutputs("the model", 3, Labelled({0, 1, 2})).ok());
  EXPECT_TRUE(CheckOutputs("the model", 3, Labelled({0})).ok()) << "a client need not have every class";
  EXPECT_TRUE(CheckOutputs("the model", 1, Labelled({0, 1})).ok()) << "two classes may be told apart by one output";
  EXPECT_TRUE(CheckOutputs("the model", 9, Written(9)).ok());
  EXPECT_TRUE(CheckOutputs("the model", 6, Valued({2, 3}, 4)).ok());
  EXPECT_TRUE(CheckOutputs("the model", 1, Valued({}, 4)).ok());
}

TEST(DataFitTest, TheShapeOfAnExampleIsCompared) {
  EXPECT_EQ(
      Message(CheckInput(Model("perceptron", 3, 4), Labelled({0, 1, 2}))),
      "/data/a.csv, example 0: the example has 2 numbers, and model 'perceptron' takes 4 numbers; set model.inputs, "
      "or bring the data to that size");
  EXPECT_EQ(
      Message(CheckInput(Model("lenet5_caffe"), Labelled({0, 1, 2}))),
      "/data/a.csv, example 0: the example has the shape [2], and model 'lenet5_caffe' takes the shape [1, 28, 28]; "
      "choose a model that fits, or bring the data to that shape");
}

TEST(DataFitTest, TextAndExamplesAreToldApart) {
  EXPECT_THAT(Message(CheckInput(Model("char_lstm"), Labelled({0, 1}))),
              HasSubstr("model 'char_lstm' takes text, and the data (CSV rows from /data) have classes as targets"));
  EXPECT_THAT(
      Message(CheckInput(Model("perceptron"), Written(9))),
      HasSubstr("model 'perceptron' takes examples, and the data (9 words from /data/a.txt, 9 different symbols) "
                "are text"));
}

TEST(DataFitTest, ALabelOutOfRangeIsShown) {
  EXPECT_EQ(
      Message(CheckOutputs("model 'm'", 3, Labelled({0, 1, 2, 5, 4}))),
      "/data/b.csv, example 1: label 5 is not in 0..2, the classes that model 'm' tells apart; correct the label, "
      "set model.classes, or save the targets as floats if they are no classes");
  EXPECT_THAT(Message(CheckOutputs("model 'm'", 1, Labelled({0, 1, 2}))),
              HasSubstr("example 0: label 2 is not in 0..1"));
  Dataset test_only = Labelled({0, 7});
  std::swap(test_only.train, test_only.test);
  EXPECT_THAT(Message(CheckOutputs("model 'm'", 3, test_only)), HasSubstr("/data/a.csv, example 1: label 7"));
}

TEST(DataFitTest, ClassesThatNoExampleShowsAreCounted) {
  Dataset dataset = Labelled({0, 1});
  dataset.classes = 4;
  EXPECT_EQ(Message(CheckOutputs("model 'm'", 3, dataset)),
            "CSV rows from /data has 4 classes; model 'm' tells 3 classes apart: set model.classes");
  EXPECT_THAT(Message(CheckOutputs("model 'm'", 3, Written(9))),
              HasSubstr("9 different symbols; model 'm' tells 3 symbols apart: set model.classes, or lower"));
}

TEST(DataFitTest, RealNumbersAreNoClasses) {
  EXPECT_EQ(
      Message(CheckOutputs("model 'm'", 10, Valued({}, 4))),
      "/data/x.npz, example 0: the target is 1 real number, and model 'm' gives 10 outputs; set model.classes = 1, "
      "or save the targets as whole numbers if they are classes");
  EXPECT_THAT(Message(CheckOutputs("model 'm'", 1, Valued({3}, 4))),
              HasSubstr("is 3 real numbers, and model 'm' gives 1"));
}

}  // namespace
}  // namespace terse
