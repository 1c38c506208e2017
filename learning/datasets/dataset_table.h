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

// Loads train and test set from `data_dir`. The data sets of the papers (mnist, cifar10, a9a, ptb, shakespeare) have
// fixed file names, look in a folder of their own name too, and want all of their files. The formats (idx, cifar,
// libsvm, csv, text, images, numpy, tensors) read what data.train and data.test name, each where it is there. With an
// empty `data_dir` "mnist" renders digits instead (glyph_digits.h), so that a run needs no download.
// NOT_FOUND for an unknown name (with the known ones) or a missing file; INVALID_ARGUMENT for a malformed file and for
// settings that the data set does not take. Each data set's header says more.
absl::StatusOr<Dataset> LoadDataset(const DataSpec& spec, const std::string& data_dir);

// Returns a key that is equal for the specs that load the same data: name, files and how they are read, without
// partition and preparation.
std::string DatasetKey(const DataSpec& spec);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_DATASET_TABLE_H_
