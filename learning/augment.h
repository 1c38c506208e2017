// Random changes of training images, the same for the same key.
#ifndef TERSE_LEARNING_AUGMENT_H_
#define TERSE_LEARNING_AUGMENT_H_

#include <cstdint>
#include <vector>

#include "core/random.h"

namespace terse {

// Augments images as He et al. 2015, section 4.2, do: each image is padded with 4 pixels of zero on every side, a
// window of its own size is cut out at a random place, and each is mirrored with probability 1/2. `images` points to
// `count` images [channels, rows, columns] of bytes, one after the other, which are changed in place.
void PadCropFlip(Random random, int64_t count, int64_t channels, int64_t rows, int64_t columns, uint8_t* images);

}  // namespace terse

#endif  // TERSE_LEARNING_AUGMENT_H_
