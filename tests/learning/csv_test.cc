#include "learning/datasets/csv.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/learning/contents.h"
#include "tests/learning/dataset_fixture.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CsvTest : public DatasetFixture {
 protected:
  CsvTest() : DatasetFixture("csv") {
    spec_.train = "train.csv";
    spec_.columns = {"age:number", "job:category=cook|smith, black|maid", "note:skip", "income:class=low|high"};
  }
  const std::string header_ = "age,job,note,income\n";
};

TEST_F(CsvTest, ReadsNumbersCategoriesAndClasses) {
  folder_.Write("train.csv",
                header_ + "31,maid,,high\r\n\n 4.5 ,\"smith, black\",\"a \"\"b\"\"\nc\",low\n7,cook,x,high");
  const Dataset dataset = Load().value();
  EXPECT_EQ(dataset.task, Task::kClasses);
  EXPECT_EQ(dataset.classes, 2);
  EXPECT_EQ(dataset.train.features.shape(), std::vector<int64_t>{4});
  EXPECT_THAT(Floats(dataset.train.features), ElementsAre(31, 0, 0, 1, 4.5, 0, 1, 0, 7, 1, 0, 0));
  EXPECT_THAT(Numbers(dataset.train.targets), ElementsAre(1, 0, 1));
}

TEST_F(CsvTest, FeaturesStandInTheSchemasOrder) {
  folder_.Write("train.csv", "\xef\xbb\xbfincome,note,job,age\nlow,,maid,31\n");
  EXPECT_THAT(Floats(Load().value().train.features), ElementsAre(31, 0, 0, 1));
}

TEST_F(CsvTest, ClassesDoNotDependOnTheRows) {
  folder_.Write("train.csv", header_ + "31,maid,,low\n");
  EXPECT_EQ(Load().value().classes, 2);
}

TEST_F(CsvTest, SeveralValuesAreTargets) {
  spec_.columns = {"x:number", "up:value", "down:value"};
  folder_.Write("train.csv", "x,up,down\n1,2,3\n4,5,-6\n");
  const Dataset dataset = Load().value();
  EXPECT_EQ(dataset.task, Task::kValues);
  EXPECT_EQ(dataset.classes, 0);
  EXPECT_EQ(dataset.train.targets.shape(), std::vector<int64_t>{2});
  EXPECT_THAT(Floats(dataset.train.targets), ElementsAre(2, 3, 5, -6));
}

TEST_F(CsvTest, AFolderHasAStartForEachFile) {
  spec_.columns = {"x:number", "y:value"};
  spec_.train = "clients";
  folder_.Write("clients/b.csv", "y,x\n1,2\n");
  folder_.Write("clients/a.csv", "x,y\n3,4\n5,6\n");
  const Dataset dataset = Load().value();
  EXPECT_THAT(Floats(dataset.train.features), ElementsAre(3, 5, 2));
  EXPECT_THAT(dataset.file_starts, ElementsAre(0, 2));
  EXPECT_TRUE(dataset.train.targets.shape().empty());
}

TEST_F(CsvTest, APatternStandsForColumnsInTheFilesOrder) {
  spec_.columns = {"y:value", "x*:number", "x_note:skip", "*_kind:category=a|b"};
  folder_.Write("train.csv", "x2,x_note,first_kind,x10,y,x1\n1,free,b,2,7,3\n");
  const Dataset dataset = Load().value();
  EXPECT_THAT(Floats(dataset.train.features), ElementsAre(1, 2, 3, 0, 1));
  EXPECT_THAT(Floats(dataset.train.targets), ElementsAre(7));
}

TEST_F(CsvTest, FilesAfterTheFirstMayHaveTheColumnsInAnotherOrder) {
  spec_.columns = {"pixel_*:number", "y:value"};
  spec_.test = "test.csv";
  folder_.Write("train.csv", "pixel_a,pixel_b,y\n1,2,0\n");
  folder_.Write("test.csv", "y,pixel_b,pixel_a\n0,4,3\n");
  EXPECT_THAT(Floats(Load().value().test.features), ElementsAre(3, 4));
  folder_.Write("test.csv", "y,pixel_b,pixel_c\n0,4,3\n");
  EXPECT_THAT(Refusal(),
              HasSubstr("/test.csv, line 1: the header has no column 'pixel_a' of data.columns; it is: y,pix"));
}

TEST_F(CsvTest, RefusesPatternsThatDoNotFit) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"x*:number", "z*:skip", "y:value"}, "line 1: no column fits 'z*' of data.columns; the header is: x1,x2,y;"},
      {{"x*:number", "y:value", "*:skip"}, "no column fits '*' of data.columns"},
      {{"x1:number", "y:value", "x1*:skip"}, "no column fits 'x1*'"},
      {{"y:number", "x*:class=1|2"}, "1 features, 2 class columns"},
      {{"y*:value", "x1*:number"}, "the header has 3 columns and data.columns 2; the header is: x1,x2,y"},
  };
  folder_.Write("train.csv", "x1,x2,y\n1,2,3\n");
  for (const auto& [columns, message] : cases) {
    spec_.columns = columns;
    EXPECT_THAT(Refusal(), HasSubstr(message));
  }
  spec_.columns = {"x*:number", "y:value"};
  folder_.Write("train.csv", "x1,x1,y\n1,2,3\n");
  EXPECT_THAT(Refusal(), HasSubstr("the header has 3 columns and data.columns 2"));
}

TEST_F(CsvTest, NamesFileLineAndReason) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "line 1: the file has no header line"},
      {"age,job,note\n", "line 1: the header has no column 'income'"},
      {"age,job,note,income,more\n", "line 1: the header has 5 columns and data.columns 4"},
      {header_ + "1,maid,,low\n1,maid,low\n", "/train.csv, line 3: the row has 3 cells, the header 4"},
      {header_ + "1,maid,\"a\nb\",low\nold,maid,,low\n", "line 4: 'old' in column 'age' is not a finite number"},
      {header_ + "nan,maid,,low\n", "'nan' in column 'age'"},
      {header_ + ",maid,,low\n", "'' in column 'age'"},
      {header_ + "1,king,,low\n", "line 2: 'king' in column 'job' is none of cook, smith, black, maid"},
      {header_ + "1,maid,,Low\n", "'Low' in column 'income' is none of low, high"},
      {header_ + "1,maid,\"a,low\n2,maid,,low\n", "line 2: a quote that opens here does not end"},
      {header_ + "1,maid,a\"b,low\n", "line 2: a quote stands inside a cell"},
      {header_ + "1,maid,\"a\"b,low\n", "line 2: text follows a cell's closing quote"},
      {header_, "0 examples"},
  };
  for (const auto& [text, message] : cases) {
    folder_.Write("train.csv", text);
    EXPECT_THAT(Refusal(), HasSubstr(message)) << text;
  }
}

TEST_F(CsvTest, RefusesSchemasThatAreNone) {
  folder_.Write("train.csv", "a,b\n1,2\n");
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{}, "0 features"},
      {{"a:number", "b:skip"}, "1 features, 0 class columns and 0 value columns"},
      {{"a:skip", "b:value"}, "0 features"},
      {{"a:number", "b:value", "c:class=x|y"}, "1 class columns and 1 value columns"},
      {{"a:number", "b:class=x|y", "c:class=x|y"}, "2 class columns"},
      {{"a:number", "b"}, "'b': its kind is not known"},
      {{"a:number", "b:float"}, "'b:float': its kind"},
      {{"a:number", "a:value"}, "'a:value': the column has an entry already"},
      {{"a:category=x", "b:value"}, "'a:category=x': one choice is none"},
      {{"a:category=x|y|x", "b:value"}, "a choice stands twice"},
  };
  for (const auto& [columns, message] : cases) {
    spec_.columns = columns;
    EXPECT_THAT(Refusal(), HasSubstr(message));
  }
}

TEST_F(CsvTest, NamesDoNotLeadOutOfTheDataDirectory) {
  spec_.columns = {"x:number", "y:value"};
  folder_.Write("secret.csv", "x,y\n1,2\n");
  for (const std::string name : {"../secret.csv", "/etc/passwd", "a/../../secret.csv", "..", "a/.."}) {
    spec_.train = name;
    EXPECT_THAT(Refusal(), HasSubstr("leads out of the data directory")) << name;
    spec_.train = "";
    spec_.test = name;
    EXPECT_THAT(Refusal(), HasSubstr("data.test is '")) << name;
    spec_.test = "";
  }
  EXPECT_THAT(Refusal(), HasSubstr("set data.train or data.test"));
  spec_.train = "..csv";
  EXPECT_EQ(Load().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(LoadDataset(spec_, "").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CsvTest, AMissingDataDirectoryIsNamed) {
  spec_.train = "train.csv";
  const absl::Status status = LoadDataset(spec_, folder_.path() + "/none").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "there is no folder " + folder_.path() + "/none, which --data names; make it, or name another one");
  DataSpec mnist;
  mnist.name = "mnist";
  EXPECT_EQ(LoadDataset(mnist, folder_.path() + "/none").status(), status);
}

TEST_F(CsvTest, AMisspeltNameIsShownWithWhatIsThere) {
  spec_.columns = {"x:number", "y:value"};
  folder_.Write("train.csv", "x,y\n1,2\n");
  folder_.Write(".hidden", "");
  EXPECT_EQ(Load().value().no_test, "data.test is not set");
  EXPECT_EQ(Load().value().no_train, "");
  spec_.test = "tset.csv";
  const std::string path = folder_.path() + "/tset.csv";
  EXPECT_EQ(Load().value().no_test, "data.test is 'tset.csv', and there is neither " + path + " nor " + path +
                                        ".gz; the folder " + folder_.path() + " holds train.csv");
  spec_.test = "no/such/file";
  for (char name = 'a'; name < 'm'; ++name) folder_.Write(std::string(1, name), "");
  EXPECT_THAT(Load().value().no_test,
              HasSubstr("the folder " + folder_.path() + " holds a, b, c, d, e, f, g, h and 5 more"));
}

TEST_F(CsvTest, EitherPartMayBeAbsent) {
  spec_.columns = {"x:number", "y:value"};
  spec_.test = "test.csv";
  EXPECT_EQ(Load().status().code(), absl::StatusCode::kNotFound);
  folder_.Write("test.csv", "x,y\n1,2\n");
  EXPECT_EQ(Load().value().train_count(), 0);
  EXPECT_EQ(Load().value().test_count(), 1);
  folder_.Write("train.csv", "x,y\n1,2\n3,4\n");
  EXPECT_EQ(Load().value().train_count(), 2);
}

}  // namespace
}  // namespace terse
