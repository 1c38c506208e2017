// NumPy's format for one array (numpy.lib.format, versions 1.0 to 3.0).
//
//   "\x93NUMPY", major, minor, header length (2 bytes in version 1, else 4; little-endian),
//   header: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }, then the values
#ifndef TERSE_LEARNING_DATASETS_NPY_H_
#define TERSE_LEARNING_DATASETS_NPY_H_

#include "absl/status/statusor.h"
#include "learning/datasets/dataset.h"
#include "learning/datasets/file_bytes.h"

namespace terse {

// The first dimension counts the examples. Values of type u1, f4, i4 and i8 stay where they are as long as they are
// aligned there; f8 becomes float, b1 int32. INVALID_ARGUMENT, with file, reason and the call of NumPy that helps, for
// another type or byte order, Fortran order, or an array without a dimension; with file, offset, reason and remedy for
// a file whose header is none, or whose length is not the one that the header promises.
absl::StatusOr<Column> ReadNpy(const FileBytes& file);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_NPY_H_
