// Arrays that Python saved with NumPy.
#ifndef TERSE_LEARNING_DATASETS_NUMPY_H_
#define TERSE_LEARNING_DATASETS_NUMPY_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/run_config.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Data set "numpy": data.train and data.test each name an .npz file (numpy.savez or savez_compressed) with the arrays x
// and y, or features and targets, or a folder with x.npy and y.npy (or features.npy and targets.npy), which are mapped
// and not read. Example i is x[i] and y[i]; npy.h says which types there are. Whole numbers in y, one an example, are
// classes; floats are values.
// NOT_FOUND for a missing array, with the ones that are there; INVALID_ARGUMENT, with file, offset and reason, for a
// damaged file, and as LoadExampleParts and FindDataParts.
absl::StatusOr<Dataset> LoadNumpy(const DataSpec& spec, const std::string& data_dir);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_NUMPY_H_
