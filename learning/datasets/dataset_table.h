// The data sets that a run may name. A new one is one file pair beside mnist and one row in dataset_table.cc.
#ifndef TERSE_LEARNING_DATASETS_DATASET_TABLE_H_
#define TERSE_LEARNING_DATASETS_DATASET_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/run_config.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Names of all data sets, in the order of the table.
std::vector<std::string> DatasetNames();

// Loads train and test set. "mnist" reads the IDX files in `data_dir` or `data_dir`/mnist; with an empty `data_dir` it
// renders digits instead (glyph_digits.h), so that a run needs no download.
// NOT_FOUND for an unknown name (with the known ones) or a missing file; INVALID_ARGUMENT for a malformed file.
absl::StatusOr<Dataset> LoadDataset(const DataSpec& spec, const std::string& data_dir);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_DATASET_TABLE_H_
