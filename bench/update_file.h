// Weight updates of a real training, kept in a file for measurements.
//
// The first line is JSON: {"format": "terse-updates 1", "origin": "...", "density": 0.01,
//   "tensors": [{"name": "conv1.weight", "shape": [20, 1, 5, 5]}, ...],
//   "updates": [{"iteration": 5, "client": 0, "positions": 4315}, ...]}
// Behind its newline follow, for each update in order, its elements (float32, all tensors one after the other) and the
// flat positions that were sent (uint32), little-endian.
#ifndef TERSE_BENCH_UPDATE_FILE_H_
#define TERSE_BENCH_UPDATE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/layout.h"

namespace terse {

struct RecordedUpdate {
  int64_t iteration = 0;
  int64_t client = 0;
  std::vector<float> values;        // residual + delta, as it was encoded
  std::vector<uint32_t> positions;  // what was sent of it, increasing
};

struct UpdateFile {
  std::string origin;  // "lenet5_caffe on MNIST, 4 clients, ..."
  double density = 0;  // with which the positions were chosen
  Layout layout;
  std::vector<RecordedUpdate> updates;
};

// Writes the file; fails with the statuses of core/file_system.h.
absl::Status WriteUpdateFile(const std::string& path, const UpdateFile& file);

// Reads the file; fails likewise, and with INVALID_ARGUMENT, naming the path, for anything that WriteUpdateFile does
// not write.
absl::StatusOr<UpdateFile> ReadUpdateFile(const std::string& path);

}  // namespace terse

#endif  // TERSE_BENCH_UPDATE_FILE_H_
