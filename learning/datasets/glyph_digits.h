// Digits drawn by the program: a data set in MNIST's shape that needs no download and is the same on every machine.
//
// Each image takes one of several hands for its digit (glyph_strokes.h), moves every point of the pen's path a little,
// draws it with a pen of varying width under a random affine map (rotation, shear, scale, shift), then varies the
// contrast and adds noise and specks. Everything is derived from the seed with operations that IEEE 754 rounds exactly.
#ifndef TERSE_LEARNING_DATASETS_GLYPH_DIGITS_H_
#define TERSE_LEARNING_DATASETS_GLYPH_DIGITS_H_

#include <cstdint>

#include "learning/datasets/dataset.h"

namespace terse {

struct GlyphDigitsOptions {
  int64_t train = 12000;
  int64_t test = 2000;
  // This is not the run's seed: all members of a fleet draw the same images.
  uint64_t seed = 28;
};

// Bytes of shape {1, 28, 28}, labels 0 to 9 drawn uniformly. Image i depends on (seed, i) alone; test images follow the
// train images.
Dataset GlyphDigits(const GlyphDigitsOptions& options);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_GLYPH_DIGITS_H_
