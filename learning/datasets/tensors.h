// Tensors that Python saved with torch.save.
#ifndef TERSE_LEARNING_DATASETS_TENSORS_H_
#define TERSE_LEARNING_DATASETS_TENSORS_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/run_config.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Data set "tensors": data.train and data.test each name a file that torch.save wrote (PyTorch 1.6 or newer) of a
// dictionary with the tensors x and y, or features and targets. Example i is x[i] and y[i]. uint8, float32, int32 and
// int64 stay; float64 and float16 become float, bool and the shorter integers int32. Whole numbers in y, one an
// example, are classes; floats are values. LibTorch reads the file, and runs no code of it.
// NOT_FOUND for a missing tensor, with the ones that are there; INVALID_ARGUMENT, with the file, when it is damaged, no
// such dictionary, or a tensor has no dimension or another type; and as LoadExampleParts and FindDataParts.
absl::StatusOr<Dataset> LoadTensors(const DataSpec& spec, const std::string& data_dir);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_TENSORS_H_
