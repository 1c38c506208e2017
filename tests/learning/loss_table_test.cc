#include "learning/loss_table.h"

#include <ATen/ATen.h>

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/learning/small_data.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

const Loss& Named(const std::string& name, Task task, int64_t classes = 0) {
  return *FindLoss(name, task, classes, /*outputs=*/0).value();
}

double Trained(const Loss& loss, const at::Tensor& output, const at::Tensor& target) {
  return loss.train(output, FitTargets(loss, output, target)).item<double>();
}

// -log softmax(row)[label] in double precision.
double RowLoss(const at::Tensor& row, int64_t label) {
  double sum = 0;
  for (int64_t i = 0; i < row.numel(); ++i) sum += std::exp(row[i].item<double>());
  return std::log(sum) - row[label].item<double>();
}

TEST(LossTableTest, CrossEntropyIsTheMeanOverTheBatch) {
  const at::Tensor logits = RandomTensor({6, 8}, 1) * 3, labels = at::tensor({0, 3, 7, 2, 2, 5}, at::kLong);
  double sum = 0, right = 0, top5 = 0;
  for (int64_t i = 0; i < 6; ++i) {
    const double own = logits[i][labels[i].item<int64_t>()].item<double>();
    int64_t above = 0;
    for (int64_t j = 0; j < 8; ++j) above += logits[i][j].item<double>() > own;
    sum += RowLoss(logits[i], labels[i].item<int64_t>());
    right += above == 0;
    top5 += above < 5;
  }
  const Loss& loss = Named("cross_entropy", Task::kClasses, 8);
  EXPECT_NEAR(Trained(loss, logits, labels), sum / 6, 1e-5);
  Score score;
  AddScore(loss, logits, labels, &score);
  AddScore(loss, logits, labels, &score);
  const Evaluation mean = ToEvaluation(loss, score);
  EXPECT_NEAR(mean.loss, sum / 6, 1e-5);
  EXPECT_DOUBLE_EQ(mean.accuracy.value(), right / 6);
  EXPECT_DOUBLE_EQ(mean.top5.value(), top5 / 6);
  EXPECT_GT(top5, right);
  EXPECT_LT(top5, 6);

  const Loss& nll = Named("nll", Task::kClasses, 8);
  EXPECT_NEAR(Trained(nll, logits.log_softmax(1), labels), sum / 6, 1e-5);
  Score same;
  AddScore(nll, logits.log_softmax(1), labels, &same);
  EXPECT_NEAR(ToEvaluation(nll, same).loss, sum / 6, 1e-5);
  EXPECT_DOUBLE_EQ(ToEvaluation(nll, same).accuracy.value(), right / 6);
}

// All of few classes are among the first five, which says nothing.
TEST(LossTableTest, FewClassesHaveNoTopFive) {
  for (const int64_t classes : {3, 5}) {
    Score score;
    const Loss& loss = Named("auto", Task::kClasses, classes);
    AddScore(loss, RandomTensor({4, classes}, 1), at::tensor({0, 1, 2, 0}, at::kLong), &score);
    EXPECT_EQ(ToEvaluation(loss, score).top5, absl::nullopt) << classes;
  }
}

TEST(LossTableTest, BinaryCrossEntropyTakesTwoClassesOrValues) {
  const at::Tensor logits = at::tensor({2.0f, -1.0f, 0.5f, -3.0f}).view({4, 1});
  const at::Tensor labels = at::tensor({1, 0, 0, 1}, at::kLong);
  double sum = 0;
  for (int64_t i = 0; i < 4; ++i) {
    const double z = logits[i][0].item<double>(), y = labels[i].item<double>();
    sum += std::log1p(std::exp(-z)) * y + std::log1p(std::exp(z)) * (1 - y);
  }
  for (const Task task : {Task::kClasses, Task::kValues}) {
    const Loss& loss = Named("bce_with_logits", task, 2);
    const at::Tensor targets = task == Task::kValues ? labels.to(at::kFloat) : labels;
    EXPECT_NEAR(Trained(loss, logits, targets), sum / 4, 1e-6);
    Score score;
    AddScore(loss, logits, targets, &score);
    EXPECT_NEAR(ToEvaluation(loss, score).loss, sum / 4, 1e-6);
    EXPECT_DOUBLE_EQ(ToEvaluation(loss, score).accuracy.value(), 0.5);
    EXPECT_EQ(ToEvaluation(loss, score).top5, absl::nullopt);
  }
}

TEST(LossTableTest, SeveralLogitsOfAnExampleAreSeveralPredictions) {
  const at::Tensor logits = at::tensor({1.0f, -1.0f, 1.0f, 1.0f, 1.0f, -1.0f}).view({2, 3});
  const at::Tensor targets = at::tensor({1.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f}).view({2, 3});
  Score score;
  const Loss& loss = Named("bce_with_logits", Task::kValues);
  AddScore(loss, logits, targets, &score);
  EXPECT_DOUBLE_EQ(ToEvaluation(loss, score).accuracy.value(), 5.0 / 6);
}

TEST(LossTableTest, SquaredErrorIsTheMeanOverBatchAndValues) {
  const at::Tensor output = RandomTensor({5, 2}, 1), target = RandomTensor({5, 2}, 2);
  double sum = 0;
  for (int64_t i = 0; i < 10; ++i) {
    sum += std::pow(static_cast<double>(output.data_ptr<float>()[i]) - target.data_ptr<float>()[i], 2);
  }
  const Loss& loss = Named("auto", Task::kValues);
  EXPECT_NEAR(Trained(loss, output, target), sum / 10, 1e-6);
  EXPECT_NEAR(Trained(loss, output.flatten(), target), sum / 10, 1e-6) << "targets take the output's shape";
  Score score;
  AddScore(loss, output.narrow(0, 0, 3), target.narrow(0, 0, 3), &score);
  AddScore(loss, output.narrow(0, 3, 2), target.narrow(0, 3, 2), &score);
  EXPECT_NEAR(ToEvaluation(loss, score).loss, sum / 10, 1e-6);
  EXPECT_FALSE(ToEvaluation(loss, score).accuracy.has_value()) << "no value is right or wrong";
}

TEST(LossTableTest, LanguageLossesAreOverSymbolsOrWholeSequences) {
  const at::Tensor logits = RandomTensor({2, 3, 7}, 1) * 2,
                   symbols = at::tensor({0, 6, 3, 2, 2, 5}, at::kLong).view({2, 3});
  double sum = 0;
  for (int64_t i = 0; i < 6; ++i) sum += RowLoss(logits[i / 3][i % 3], symbols[i / 3][i % 3].item<int64_t>());
  EXPECT_NEAR(Trained(Named("lm_cross_entropy", Task::kText), logits, symbols), sum / 6, 1e-5);
  EXPECT_NEAR(Trained(Named("sequence_cross_entropy", Task::kText), logits, symbols), sum / 2, 1e-5);
  for (const char* name : {"lm_cross_entropy", "sequence_cross_entropy"}) {
    const Loss& loss = Named(name, Task::kText);
    Score score;
    AddScore(loss, logits, symbols, &score);
    EXPECT_EQ(score.count, 6);
    EXPECT_NEAR(ToEvaluation(loss, score).loss, sum / 6, 1e-5)
        << "the logarithm of the perplexity, whatever is trained";
    EXPECT_GE(ToEvaluation(loss, score).top5.value(), ToEvaluation(loss, score).accuracy.value());
  }
}

TEST(LossTableTest, NamesAreCheckedAgainstTheTask) {
  EXPECT_STREQ(Named("auto", Task::kClasses, 10).name, "cross_entropy");
  EXPECT_STREQ(Named("auto", Task::kValues).name, "mse");
  EXPECT_STREQ(Named("auto", Task::kText, 98).name, "lm_cross_entropy");
  const absl::Status status = FindLoss("bce_with_logits", Task::kClasses, 3, 3).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("auto, cross_entropy, nll"));
  EXPECT_FALSE(FindLoss("mse", Task::kText, 3, 3).ok());
  EXPECT_FALSE(FindLoss("hinge", Task::kClasses, 3, 3).ok());
  EXPECT_STREQ(FindLoss("auto", Task::kClasses, 2, 1).value()->name, "bce_with_logits") << "one logit for two classes";
  EXPECT_STREQ(FindLoss("auto", Task::kClasses, 2, 2).value()->name, "cross_entropy");
  EXPECT_FALSE(FindLoss("cross_entropy", Task::kClasses, 2, 1).ok());
  EXPECT_FALSE(FindLoss("bce_with_logits", Task::kClasses, 2, 2).ok());
  EXPECT_STREQ(FindLoss("bce_with_logits", Task::kValues, 0, 3).value()->name, "bce_with_logits");
  EXPECT_EQ(ToEvaluation(Named("mse", Task::kValues), {}).loss, 0);
}

}  // namespace
}  // namespace terse
