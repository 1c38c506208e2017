#include "learning/augment.h"

#include <algorithm>
#include <cstring>

namespace terse {
namespace {

constexpr int64_t kPad = 4;

// One channel of one image, moved by (down, right) and then mirrored; what comes in from outside is zero.
void MovePlane(const uint8_t* from, int64_t rows, int64_t columns, int64_t down, int64_t right, bool flip,
               uint8_t* to) {
  std::memset(to, 0, rows * columns);
  const int64_t begin = std::max<int64_t>(0, -right), end = std::min(columns, columns - right);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t source = row + down;
    if (source < 0 || source >= rows || begin >= end) continue;
    uint8_t* const line = to + row * columns;
    std::memcpy(line + begin, from + source * columns + begin + right, end - begin);
    if (flip) std::reverse(line, line + columns);
  }
}

}  // namespace

void PadCropFlip(Random random, int64_t count, int64_t channels, int64_t rows, int64_t columns, uint8_t* images) {
  std::vector<uint8_t> plane(rows * columns);
  for (int64_t image = 0; image < count; ++image) {
    const int64_t down = static_cast<int64_t>(random.Below(2 * kPad + 1)) - kPad;
    const int64_t right = static_cast<int64_t>(random.Below(2 * kPad + 1)) - kPad;
    const bool flip = random.Below(2) == 1;
    for (int64_t channel = 0; channel < channels; ++channel, images += plane.size()) {
      MovePlane(images, rows, columns, down, right, flip, plane.data());
      std::memcpy(images, plane.data(), plane.size());
    }
  }
}

}  // namespace terse
