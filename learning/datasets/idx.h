// IDX, the file format of MNIST and its relatives: big-endian header, then unsigned bytes. Files may be
// gzip-compressed.
//
//   images: 00 00 08 03, uint32 count, uint32 rows, uint32 columns, count * rows * columns bytes
//   labels: 00 00 08 01, uint32 count, count bytes
#ifndef TERSE_LEARNING_DATASETS_IDX_H_
#define TERSE_LEARNING_DATASETS_IDX_H_

#include <string>

#include "absl/status/statusor.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Reads an images file and its labels file. Sizes in the headers are held against the files' lengths before anything is
// allocated for them.
// NOT_FOUND when a file cannot be opened. INVALID_ARGUMENT, with file, offset, reason and remedy, when a file is cut
// short, has bytes left over, is not IDX of that kind or is damaged gzip, when an image has no pixel or more than 2^20,
// when the two counts differ, or when a label is not below `classes`.
absl::StatusOr<Examples> ReadIdxExamples(const std::string& images_path, const std::string& labels_path,
                                         int64_t classes);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_IDX_H_
