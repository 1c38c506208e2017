// LIBSVM's text format (Chang, Lin 2011): a line an example, "LABEL FEATURE:VALUE FEATURE:VALUE ...". Features are
// numbered from 1 and grow along the line; the ones left out are 0. Text behind a # is a comment.
#ifndef TERSE_LEARNING_DATASETS_LIBSVM_H_
#define TERSE_LEARNING_DATASETS_LIBSVM_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/run_config.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Data set "libsvm": data.train and data.test each name a file, plain or with .gz, or a folder of files that end with
// .libsvm. Rows become floats {data.features}, or {the largest feature of the training set} when that is 0 (of the test
// set where it is alone). Labels are class numbers; -1 is class 0 beside 1.
// INVALID_ARGUMENT, with file, line, reason and remedy, for a line that is not of this form, a number that is not
// finite, features that do not grow or are above data.features (2^24 at most), a -1 beside other labels than 1, or rows
// that take more than 1024 times the file's length or 16 GiB. Also returns what FindDataParts returns.
absl::StatusOr<Dataset> LoadLibsvm(const DataSpec& spec, const std::string& data_dir);

// Data set "a9a": the files a9a and a9a.t in `data_dir` or its folder a9a, with 123 features and two classes. NOT_FOUND
// when one is missing, and as above.
absl::StatusOr<Dataset> LoadA9a(const DataSpec& spec, const std::string& data_dir);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_LIBSVM_H_
