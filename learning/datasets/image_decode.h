// PNG, JPEG and binary PGM and PPM as planes of bytes.
#ifndef TERSE_LEARNING_DATASETS_IMAGE_DECODE_H_
#define TERSE_LEARNING_DATASETS_IMAGE_DECODE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "learning/datasets/file_bytes.h"

namespace terse {

struct Image {
  int64_t channels = 0;  // 1: grey; 3: red, green, blue
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<uint8_t> planes;  // {channels, rows, columns}
};

// The kind follows from the first bytes, not from the name. Samples of more than 8 bits are brought to 8, palettes
// become colours, transparent pixels stand on black. The size is checked before memory is taken for it.
// INVALID_ARGUMENT, with file, offset or reason, and remedy, for another kind, a damaged or short file, or an image of
// more than 2^24 samples.
absl::StatusOr<Image> DecodeImage(const FileBytes& file);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_IMAGE_DECODE_H_
