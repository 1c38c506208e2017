// Images in one folder per class.
#ifndef TERSE_LEARNING_DATASETS_IMAGE_FOLDER_H_
#define TERSE_LEARNING_DATASETS_IMAGE_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/run_config.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Data set "images": data.train and data.test each name a folder whose subfolders are the classes, in the order of
// their names; every member of a fleet must have all of them, also where they are empty. Their files are PNG, JPEG or
// binary PGM and PPM, all of one size and number of channels. Features are bytes {channels, rows, columns}. Names that
// begin with a dot are passed over. The test folder's classes must be among the training folder's.
// INVALID_ARGUMENT, with the file and the reason, for a file that cannot be decoded, differs in shape or does not lie
// in a class, fewer than two classes, a class that only the test folder has, or images of more than 16 GiB. Also
// returns what FindDataParts returns.
absl::StatusOr<Dataset> LoadImageFolder(const DataSpec& spec, const std::string& data_dir);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_IMAGE_FOLDER_H_
