#include "learning/datasets/dataset_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "learning/datasets/cifar.h"
#include "learning/datasets/csv.h"
#include "learning/datasets/idx.h"
#include "learning/datasets/image_folder.h"
#include "learning/datasets/libsvm.h"
#include "learning/datasets/mnist.h"
#include "learning/datasets/numpy.h"
#include "learning/datasets/tensors.h"
#include "learning/datasets/text.h"

namespace terse {
namespace {

struct DatasetRow {
  const char* name;
  absl::StatusOr<Dataset> (*load)(const DataSpec& spec, const std::string& data_dir);
};

constexpr DatasetRow kDatasets[] = {
    {"mnist", LoadMnistOrGlyphs},
    {"cifar10", LoadCifar10},
    {"a9a", LoadA9a},
    {"ptb", LoadPtb},
    {"shakespeare", LoadShakespeare},
    {"idx", LoadIdx},
    {"cifar", LoadCifar},
    {"libsvm", LoadLibsvm},
    {"csv", LoadCsv},
    {"text", LoadText},
    {"images", LoadImageFolder},
    {"numpy", LoadNumpy},
    {"tensors", LoadTensors},
};

}  // namespace

std::vector<std::string> DatasetNames() {
  std::vector<std::string> names;
  for (const DatasetRow& row : kDatasets) names.push_back(row.name);
  return names;
}

absl::StatusOr<Dataset> LoadDataset(const DataSpec& spec, const std::string& data_dir) {
  for (const DatasetRow& row : kDatasets) {
    if (spec.name == row.name) return row.load(spec, data_dir);
  }
  return absl::NotFoundError(
      absl::StrCat("data set '", spec.name, "' is not known; data.name may be: ", absl::StrJoin(DatasetNames(), ", ")));
}

std::string DatasetKey(const DataSpec& spec) {
  return absl::StrJoin({spec.name, spec.train, spec.test, absl::StrJoin(spec.columns, "\n"), spec.level,
                        absl::StrCat(spec.vocabulary), absl::StrCat(spec.features)},
                       std::string(1, '\0'));
}

}  // namespace terse
