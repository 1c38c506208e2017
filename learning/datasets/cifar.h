// CIFAR's binary layout (Krizhevsky 2009): records of one label byte and 3 x 32 x 32 bytes, the red rows, then the
// green, then the blue.
#ifndef TERSE_LEARNING_DATASETS_CIFAR_H_
#define TERSE_LEARNING_DATASETS_CIFAR_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/run_config.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Data set "cifar10": data_batch_1.bin to data_batch_5.bin and test_batch.bin, each plain or with .gz, in `data_dir` or
// in its folder cifar10 or cifar-10-batches-bin. Features are bytes {3, 32, 32}; file_starts has the five batches.
// NOT_FOUND, with the places looked at, when one is missing; INVALID_ARGUMENT, with file, offset and reason, for a file
// that is no whole number of records or a label above 9.
absl::StatusOr<Dataset> LoadCifar10(const DataSpec& spec, const std::string& data_dir);

// Data set "cifar": data.train and data.test each name a file in this layout, or a folder of such files, taken in the
// order of their names, that end with .bin. Labels may be any byte. Also returns what FindDataParts returns.
absl::StatusOr<Dataset> LoadCifar(const DataSpec& spec, const std::string& data_dir);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_CIFAR_H_
