// Labelled images kept as the bytes they came in; a batch becomes floats only when it is used.
#ifndef TERSE_LEARNING_DATASETS_DATASET_H_
#define TERSE_LEARNING_DATASETS_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

namespace terse {

// One-channel images of one size. Image i is images[i * rows * columns ...], row by row, 0 background to 255 ink.
struct Examples {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<uint8_t> images;
  std::vector<uint8_t> labels;

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
  int64_t pixels() const { return rows * columns; }
};

struct Dataset {
  std::string description;  // for logs: "MNIST from /data" or "12000 rendered digits"
  int64_t classes = 0;      // labels are below it
  Examples train;
  Examples test;
};

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_DATASET_H_
