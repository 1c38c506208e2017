// Finds a run's data below the data directory. Names come from the run, so from another machine: they never lead out of
// the directory.
#ifndef TERSE_LEARNING_DATASETS_DATA_FILES_H_
#define TERSE_LEARNING_DATASETS_DATA_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/run_config.h"

namespace terse {

// The paths that data.train and data.test name, both optional: a coordinator may have only the test set, a client only
// its own training set. Empty where the run names nothing or nothing is there; `no_train` and `no_test` then say so,
// with the key, the path and what is in the folder.
struct DataParts {
  std::string train;
  std::string test;
  std::string no_train;
  std::string no_test;
};

// A name stands for the file or folder of that name in `data_dir`, or the file with .gz after it.
// INVALID_ARGUMENT for an empty data_dir, a name that is absolute or has a ".." in it, or when the run names neither;
// NOT_FOUND when there is no folder data_dir, and, with the places looked at and what is there, when nothing is there
// of what it names.
absl::StatusOr<DataParts> FindDataParts(const DataSpec& spec, const std::string& data_dir);

// The first file that is there: each name, plain or with .gz, in data_dir and then in each of `folders` below it.
// NOT_FOUND when there is no folder data_dir, or with the places looked at and `remedy` ("put MNIST's four IDX files
// there").
absl::StatusOr<std::string> FindDataFile(const std::string& data_dir, absl::Span<const absl::string_view> folders,
                                         absl::string_view name, absl::string_view remedy);

// `path` itself when it is a file; of a folder the files whose names end with `ending` (or that and .gz), sorted.
// NOT_FOUND when there is none.
absl::StatusOr<std::vector<std::string>> ListDataFiles(const std::string& path, absl::string_view ending);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_DATA_FILES_H_
