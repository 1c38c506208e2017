// Tests what holds for every format of the table, whatever it looks like.
#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "core/random.h"
#include "gmock/gmock.h"
#include "tests/learning/dataset_fixture.h"
#include "tests/learning/gzip.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

struct Sample {
  std::string name;  // of the file or folder that data.train names
  // Names below the data directory and contents; a part begins with `name`.
  std::map<std::string, std::string> files;
};

std::string Npy(const std::string& type, const std::string& shape, const std::string& values) {
  const std::string header = absl::StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': ", shape, "}\n");
  return absl::StrCat(std::string("\x93NUMPY\1\0", 8), std::string(1, static_cast<char>(header.size())),
                      std::string(1, '\0'), header, values);
}

const std::map<std::string, Sample>& Samples() {
  static const auto& samples = *new std::map<std::string, Sample>{
      {"idx",
       {"images-idx3",
        {{"images-idx3", std::string("\0\0\10\3\0\0\0\2\0\0\0\1\0\0\0\2abcd", 20)},
         {"labels-idx1", std::string("\0\0\10\1\0\0\0\2\0\1", 10)}}}},
      {"cifar", {"a.bin", {{"a.bin", std::string(2 * 3073, '\3')}}}},
      {"libsvm", {"a", {{"a", "+1 1:0.5 2:3e-1\n-1 2:1 # end\n"}}}},
      {"csv", {"a.csv", {{"a.csv", "n,\"c\",y\r\n1,red,2\n-3.5,\"bl\"\"ue\",1\n"}}}},
      {"text", {"a.txt", {{"a.txt", "to be \xe2\x82\xac or\nnot\n"}}}},
      {"images", {"a", {{"a/cat/1.pgm", "P5 2 1 255 ab"}, {"a/dog/1.ppm", "P5\n#c\n2 1\n255\ncd"}}}},
      {"numpy",
       {"a", {{"a/x.npy", Npy("<f4", "(2, 1)", "abcdefgh")}, {"a/y.npy", Npy("|u1", "(2,)", std::string("\1\0", 2))}}}},
  };
  return samples;
}

class DatasetFormatTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    spec_.name = GetParam();
    spec_.columns = {"n:number", "c:category=red|bl\"ue", "y:value"};
    for (const auto& [name, contents] : sample_.files) folder_.Write(name, contents);
  }
  absl::StatusOr<Dataset> Load() const { return LoadDataset(spec_, folder_.path()); }

  const Sample& sample_ = Samples().at(GetParam());
  TempFolder folder_;
  DataSpec spec_;
};

// The formats that stand behind the data sets of the papers; tensors_test.cc has the ones that Python must write.
std::vector<std::string> Formats() {
  std::vector<std::string> names;
  for (const std::string& name : DatasetNames()) {
    if (Samples().count(name) != 0) names.push_back(name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Table, DatasetFormatTest, ::testing::ValuesIn(Formats()),
                         [](const auto& info) { return info.param; });

TEST(DatasetFormatsTest, EveryRowIsTested) {
  std::vector<std::string> rest;
  for (const std::string& name : DatasetNames()) {
    if (Samples().count(name) == 0) rest.push_back(name);
  }
  EXPECT_THAT(rest, ::testing::ElementsAre("mnist", "cifar10", "a9a", "ptb", "shakespeare", "tensors"));
}

TEST_P(DatasetFormatTest, ReadsTrainingAndTestSet) {
  spec_.train = spec_.test = sample_.name;
  const Dataset dataset = Load().value();
  EXPECT_GE(dataset.train_count(), 2);
  EXPECT_EQ(dataset.test_count(), dataset.train_count());
  EXPECT_FALSE(dataset.description.empty());
  EXPECT_EQ(dataset.classes > 0, dataset.task != Task::kValues);
  if (dataset.task == Task::kText) {
    EXPECT_EQ(dataset.train_text.symbols, dataset.test_text.symbols);
    EXPECT_EQ(static_cast<int64_t>(dataset.vocabulary.size()), dataset.classes);
  } else {
    EXPECT_EQ(dataset.train.features.Hash(), dataset.test.features.Hash());
    EXPECT_EQ(dataset.train.targets.count(), dataset.train.features.count());
  }
  // A second load gives the same bytes.
  EXPECT_EQ(Load().value().train.features.Hash(), dataset.train.features.Hash());
}

TEST_P(DatasetFormatTest, APartMayBeMissing) {
  spec_.train = sample_.name;
  spec_.test = "elsewhere";
  EXPECT_EQ(Load().value().test_count(), 0);
  std::swap(spec_.train, spec_.test);
  const auto test_only = Load();
  if (GetParam() == "text") {
    EXPECT_EQ(test_only.status().code(), absl::StatusCode::kNotFound);
  } else {
    EXPECT_EQ(test_only->train_count(), 0);
    EXPECT_GE(test_only->test_count(), 2);
  }
  spec_.test = "nowhere";
  const absl::Status status = Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_.path() + "/elsewhere"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_.path() + "/nowhere"));
}

TEST_P(DatasetFormatTest, NamesStayInTheDataDirectory) {
  for (const std::string& name :
       {"/" + sample_.name, "../" + sample_.name, sample_.name + "/..", std::string("a\0b", 3)}) {
    spec_.train = name;
    EXPECT_EQ(Load().status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST_P(DatasetFormatTest, CompressedFilesAreTheSame) {
  spec_.train = sample_.name;
  Dataset dataset = Load().value();
  const Id128 features = dataset.train.features.Hash();
  const std::vector<int32_t> symbols = dataset.train_text.symbols;
  dataset = Dataset();  // before the mapped files change
  for (const auto& [name, contents] : sample_.files) folder_.Write(name, Gzip(contents));
  dataset = Load().value();
  EXPECT_EQ(dataset.train.features.Hash(), features);
  EXPECT_EQ(dataset.train_text.symbols, symbols);
}

// Damaged files are read or refused, with their name; under the sanitizers this also shows that no byte outside is
// touched.
TEST_P(DatasetFormatTest, DamageIsRefusedWithTheFilesName) {
  spec_.train = sample_.name;
  Random random(3);
  for (const auto& [name, contents] : sample_.files) {
    for (int trial = 0; trial < 300; ++trial) {
      std::string damaged = contents.substr(0, contents.size() - (trial % 3 == 0 ? random.Below(contents.size()) : 0));
      for (uint64_t i = random.Below(4); i > 0 && trial % 3 != 0; --i) {
        damaged[random.Below(damaged.size())] = static_cast<char>(random.Below(256));
      }
      folder_.Write(name, damaged);
      const absl::Status status = Load().status();
      EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
      if (status.ok()) continue;
      EXPECT_THAT(std::string(status.message()), HasSubstr(folder_.path() + "/"));
    }
    folder_.Write(name, contents);
  }
}

TEST(DatasetKeyTest, TellsDataApartAndNothingElse) {
  DataSpec spec;
  spec.name = "csv";
  const std::string key = DatasetKey(spec);
  DataSpec same = spec;
  same.partition = "all";
  same.normalize = "standardize";
  EXPECT_EQ(DatasetKey(same), key);
  std::vector<DataSpec> others(6, spec);
  others[0].name = "idx";
  others[1].train = "a";
  others[2].test = "a";
  others[3].columns = {"a:number"};
  others[4].vocabulary = 5;
  others[5].level = "word";
  for (const DataSpec& other : others) EXPECT_NE(DatasetKey(other), key);
  EXPECT_NE(DatasetKey(others[1]), DatasetKey(others[2]));
}

}  // namespace
}  // namespace terse
