#include "learning/datasets/libsvm.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/learning/contents.h"
#include "tests/learning/dataset_fixture.h"
#include "tests/learning/gzip.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LibsvmTest : public DatasetFixture {
 protected:
  LibsvmTest() : DatasetFixture("libsvm") {
    spec_.train = "train";
    spec_.test = "test";
  }
};

TEST_F(LibsvmTest, ReadsSparseRows) {
  folder_.Write("train", "+1 1:0.5 3:-2 # a comment\n\n-1 2:1e2\r\n-1");
  folder_.Write("test", "1 3:1\n");
  const Dataset dataset = Load().value();
  EXPECT_EQ(dataset.task, Task::kClasses);
  EXPECT_EQ(dataset.classes, 2);
  EXPECT_EQ(dataset.train.features.shape(), std::vector<int64_t>{3});
  EXPECT_EQ(Floats(dataset.train.features), (std::vector<float>{0.5f, 0, -2, 0, 100, 0, 0, 0, 0}));
  EXPECT_EQ(Numbers(dataset.train.targets), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(Floats(dataset.test.features), (std::vector<float>{0, 0, 1}));
  EXPECT_EQ(Numbers(dataset.test.targets), std::vector<double>{1});
}

TEST_F(LibsvmTest, AByteOrderMarkIsNoPartOfTheLabel) {
  spec_.test = "";
  folder_.Write("train", "\xef\xbb\xbf+1 1:0.5\n-1 1:2\n");
  EXPECT_EQ(Numbers(Load().value().train.targets), (std::vector<double>{1, 0}));
}

TEST_F(LibsvmTest, LabelsMayBeClassNumbers) {
  folder_.Write("train", "0 1:1\n4 1:1\n2.0 1:1\n");
  const Dataset dataset = Load().value();
  EXPECT_EQ(dataset.classes, 5);
  EXPECT_EQ(Numbers(dataset.train.targets), (std::vector<double>{0, 4, 2}));
}

TEST_F(LibsvmTest, TheRunMayNameTheNumberOfFeatures) {
  spec_.features = 5;
  folder_.Write("test.gz", Gzip("1 2:3\n"));
  EXPECT_EQ(Floats(Load().value().test.features), (std::vector<float>{0, 3, 0, 0, 0}));
  folder_.Write("test.gz", Gzip("1 6:3\n"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("features up to 6"), HasSubstr("data.features")));
  spec_.features = -1;
  EXPECT_THAT(Refusal(), HasSubstr("data.features is -1"));
}

TEST_F(LibsvmTest, TheTestSetHasTheTrainingSetsFeatures) {
  folder_.Write("train", "1 2:3\n0 1:1\n");
  folder_.Write("test", "1 3:3\n");
  EXPECT_THAT(Refusal(), HasSubstr("/test: 1 rows with features up to 3 do not fit into rows of 2"));
}

TEST_F(LibsvmTest, NamesFileLineAndReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"1 1:2\nx 1:2\n", "/train, line 2: label 'x'"},
      {"1.5 1:2\n", "line 1: label '1.5'"},
      {"-2 1:2\n", "line 1: label '-2'"},
      {"1 0:2\n", "line 1: feature 0 is not in 1..16777216"},
      {"1 16777217:2\n", "feature 16777217 is not in"},
      {"1 2:2 2:3\n", "line 1: feature 2 is not in 1..16777216 or does not follow"},
      {"1 3:2 2:3\n", "feature 2 is not"},
      {"1 3\n", "line 1: '3' is not FEATURE:VALUE"},
      {"1 3:\n", "'3:' is not FEATURE:VALUE"},
      {"1 a:1\n", "'a:1' is not FEATURE:VALUE"},
      {"1 1:nan\n", "'1:nan' is not FEATURE:VALUE"},
      {"1 1:inf\n", "'1:inf' is not FEATURE:VALUE"},
      {"-1 1:1\n0 1:1\n", "label 0 stands beside -1"},
      {"# nothing\n", "0 examples"},
      {"", "0 examples"},
  };
  for (const auto& [text, message] : cases) {
    folder_.Write("train", text);
    EXPECT_THAT(Refusal(), HasSubstr(message)) << text;
  }
}

TEST_F(LibsvmTest, TakesNoMemoryThatTheFileDoesNotWarrant) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "1 16777216:1\n";  // 64 GiB of floats
  folder_.Write("train", text);
  EXPECT_THAT(Refusal(), HasSubstr("1000 rows with features up to 16777216"));
}

TEST(A9aTest, FindsBothFiles) {
  const TempFolder folder;
  DataSpec spec;
  spec.name = "a9a";
  folder.Write("a9a/a9a", "-1 3:1 122:1\n+1 5:1\n");
  EXPECT_EQ(LoadDataset(spec, folder.path()).status().code(), absl::StatusCode::kNotFound);
  folder.Write("a9a/a9a.t", "-1 1:1\n");
  const Dataset dataset = LoadDataset(spec, folder.path()).value();
  EXPECT_EQ(dataset.train.features.shape(), std::vector<int64_t>{123});
  EXPECT_EQ(dataset.train.features.Slice(0, 1).Reshaped({}).Number(0), 0);
  EXPECT_EQ(dataset.classes, 2);
}

}  // namespace
}  // namespace terse
