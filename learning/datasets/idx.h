// IDX, the file format of MNIST and its relatives: big-endian header, then unsigned bytes. Files may be
// gzip-compressed.
//
//   00 00 08 D, uint32 size of dimension 1, ..., uint32 size of dimension D, product of the sizes in bytes
//
// The first dimension counts the examples, the others are an example's shape.
#ifndef TERSE_LEARNING_DATASETS_IDX_H_
#define TERSE_LEARNING_DATASETS_IDX_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/run_config.h"
#include "learning/datasets/dataset.h"

namespace terse {

// One file of 1 to 4 dimensions. The header is held against the file's length before it is believed; the values of a
// plain file stay in the mapped file.
// NOT_FOUND when the file cannot be opened. INVALID_ARGUMENT, with file, offset, reason and remedy, when it is cut
// short, has bytes left over, is not IDX of unsigned bytes or is damaged gzip, or when an example has no value or more
// than 2^20.
absl::StatusOr<Column> ReadIdx(const std::string& path);

// Images and their labels. Images of two dimensions get one channel: rows x columns become {1, rows, columns}. Also
// INVALID_ARGUMENT when a file has other dimensions, the two counts differ, or a label is not below `classes`
// (0: any byte).
absl::StatusOr<Examples> ReadIdxExamples(const std::string& images_path, const std::string& labels_path,
                                         int64_t classes);

// Data set "idx": data.train and data.test name files of images with "images" and "idx" in their names, such as
// train-images-idx3-ubyte; the labels lie beside them under the name with "labels" and "idx1" instead. Returns what
// FindDataParts and ReadIdxExamples return, and NOT_FOUND for missing labels.
absl::StatusOr<Dataset> LoadIdx(const DataSpec& spec, const std::string& data_dir);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_IDX_H_
