// The shapes of the ten digits as pen strokes, in several hands.
#ifndef TERSE_LEARNING_DATASETS_GLYPH_STROKES_H_
#define TERSE_LEARNING_DATASETS_GLYPH_STROKES_H_

#include <vector>

#include "absl/types/span.h"

namespace terse {

struct GlyphPoint {
  float x = 0;  // 0 left to 1 right
  float y = 0;  // 0 top to 1 bottom
};

// One pen stroke: a chain of quadratic Bezier curves. Points 0, 2, 4 ... lie on the stroke, 1, 3, 5 ... are the
// controls between them, so the number of points is odd and at least 3.
using GlyphStroke = std::vector<GlyphPoint>;
// One way of writing a digit.
using Glyph = std::vector<GlyphStroke>;

// The ways of writing `digit` (0 to 9); at least two. Lives for the whole program.
absl::Span<const Glyph> GlyphsOf(int digit);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_GLYPH_STROKES_H_
