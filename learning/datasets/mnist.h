// MNIST (LeCun, Cortes, Burges) from its four IDX files, or any data set of 28x28 images in ten classes in the same
// files.
#ifndef TERSE_LEARNING_DATASETS_MNIST_H_
#define TERSE_LEARNING_DATASETS_MNIST_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/run_config.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each plain
// or with .gz, from `directory` or from its subfolder mnist. NOT_FOUND, with the places looked at, when one is missing;
// INVALID_ARGUMENT for a malformed file, an empty one, or images that are not 28x28.
absl::StatusOr<Dataset> LoadMnist(const std::string& directory);

// Data set "mnist": LoadMnist of `data_dir`, or rendered digits (glyph_digits.h) when that is empty.
absl::StatusOr<Dataset> LoadMnistOrGlyphs(const DataSpec& spec, const std::string& data_dir);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_MNIST_H_
