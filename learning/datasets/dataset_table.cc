#include "learning/datasets/dataset_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "learning/datasets/glyph_digits.h"
#include "learning/datasets/mnist.h"

namespace terse {
namespace {

struct DatasetRow {
  const char* name;
  absl::StatusOr<Dataset> (*load)(const std::string& data_dir);
};

absl::StatusOr<Dataset> MnistOrGlyphs(const std::string& data_dir) {
  if (data_dir.empty()) return GlyphDigits(GlyphDigitsOptions());
  return LoadMnist(data_dir);
}

constexpr DatasetRow kDatasets[] = {
    {"mnist", MnistOrGlyphs},
};

}  // namespace

std::vector<std::string> DatasetNames() {
  std::vector<std::string> names;
  for (const DatasetRow& row : kDatasets) names.push_back(row.name);
  return names;
}

absl::StatusOr<Dataset> LoadDataset(const DataSpec& spec, const std::string& data_dir) {
  for (const DatasetRow& row : kDatasets) {
    if (spec.name == row.name) return row.load(data_dir);
  }
  return absl::NotFoundError(
      absl::StrCat("data set '", spec.name, "' is not known; data.name may be: ", absl::StrJoin(DatasetNames(), ", ")));
}

}  // namespace terse
