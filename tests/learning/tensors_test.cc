#include "learning/datasets/tensors.h"

#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/learning/contents.h"
#include "tests/learning/dataset_fixture.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Tests the files that Python's torch.save writes.
class TensorsTest : public DatasetFixture {
 protected:
  TensorsTest() : DatasetFixture("tensors") {}
  static void SetUpTestSuite() {
    saved_ = new TempFolder();
    const std::string command =
        absl::StrCat("/usr/bin/python3 ", InSource("tests/learning/save_arrays.py"), " torch ", saved_->path());
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  static void TearDownTestSuite() {
    delete saved_;
    saved_ = nullptr;
  }
  absl::StatusOr<Dataset> LoadSaved(const std::string& name) {
    spec_.train = name;
    return LoadDataset(spec_, saved_->path());
  }
  static TempFolder* saved_;
};
TempFolder* TensorsTest::saved_ = nullptr;

TEST_F(TensorsTest, ReadsTheTypes) {
  const std::pair<const char*, Element> types[] = {{"u1", Element::kByte},  {"f4", Element::kFloat},
                                                   {"f8", Element::kFloat}, {"i4", Element::kInt32},
                                                   {"i8", Element::kInt64}, {"b1", Element::kInt32}};
  for (const auto& [type, element] : types) {
    const Dataset dataset = LoadSaved(absl::StrCat(type, ".pt")).value();
    EXPECT_EQ(dataset.task, Task::kClasses);
    EXPECT_EQ(dataset.classes, 4);
    EXPECT_EQ(dataset.train.features.element(), element) << type;
    EXPECT_EQ(dataset.train.features.shape(), (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(dataset.train.features.Number(3), element == Element::kInt32 && type[0] == 'b' ? 1 : 18);
    EXPECT_THAT(Numbers(dataset.train.targets), ElementsAre(0, 3, 1, 2));
  }
}

TEST_F(TensorsTest, FloatTargetsAreValues) {
  const Dataset dataset = LoadSaved("values.pt").value();
  EXPECT_EQ(dataset.task, Task::kValues);
  EXPECT_EQ(dataset.train.targets.shape(), std::vector<int64_t>{2});
  std::vector<float> all(24);
  std::iota(all.begin(), all.end(), 0.0f);
  EXPECT_EQ(Floats(dataset.train.features), all);
}

TEST_F(TensorsTest, ViewsAreLaidOut) {
  const Dataset dataset = LoadSaved("view.pt").value();
  ASSERT_EQ(dataset.train.features.shape(), (std::vector<int64_t>{2, 3}));
  // wide[i][j][k] is source[k][j][2 i] of shape 3 x 2 x 8.
  EXPECT_THAT(Floats(dataset.train.features.Slice(1, 1)), ElementsAre(2, 18, 34, 10, 26, 42));
}

TEST_F(TensorsTest, RefusesOtherContents) {
  EXPECT_THAT(std::string(LoadSaved("tensor.pt").status().message()), HasSubstr("it holds no dictionary"));
  EXPECT_THAT(std::string(LoadSaved("no_y.pt").status().message()), HasSubstr("no tensor y or targets; it has x, z"));
  EXPECT_THAT(std::string(LoadSaved("scalar.pt").status().message()), HasSubstr("0 dimensions is not read"));
  EXPECT_THAT(std::string(LoadSaved("complex.pt").status().message()), HasSubstr("ComplexFloat"));
}

TEST_F(TensorsTest, RefusesWhatIsNoArchiveOrCutShort) {
  spec_.train = "train.pt";
  for (const std::string bytes : {"", "PK", "no archive at all, but long enough to look for one"}) {
    folder_.Write("train.pt", bytes);
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("/train.pt"), HasSubstr("write it with torch.save")));
  }
  std::ostringstream whole;
  whole << std::ifstream(saved_->path() + "/f4.pt", std::ios::binary).rdbuf();
  for (size_t length = 0; length < whole.str().size(); length += 37) {
    folder_.Write("train.pt", whole.str().substr(0, length));
    Refusal();
  }
}

}  // namespace
}  // namespace terse
