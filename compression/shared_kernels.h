// The inner loops of the decoder of shared_coder.h, for every SIMD target (simd.h). Not for use by anything else.
#ifndef TERSE_COMPRESSION_SHARED_KERNELS_H_
#define TERSE_COMPRESSION_SHARED_KERNELS_H_

#include <array>
#include <cstdint>

namespace terse {

constexpr int kSharedScaleBits = 12;
constexpr uint32_t kSharedScale = 1 << kSharedScaleBits;
constexpr int kSharedWindows = 16;  // the last one means: none of the others, look again behind them
constexpr int kSharedWordBits = 16;
constexpr int64_t kSharedPad = 4;  // words behind the last one that can be read and stand for nothing
constexpr uint32_t kSharedLowest = 1 << kSharedWordBits;  // least state

struct SharedInterval {
  uint32_t frequency = 0;
  uint32_t begin = 0;
};

// How a number of positions is coded, whatever the masses: a gap is whole windows of 2^slot_bits mass, and a slot in
// the last one.
struct SharedModel {
  int slot_bits = 0;
  std::array<SharedInterval, kSharedWindows> windows;
};

// The masses of up to kMost elements in a row.
struct MassRun {
  static constexpr int64_t kMost = 4096;
  static constexpr int64_t kGroup = 8;
  static constexpr int64_t kLook = 32;  // groups that are looked at together

  int64_t begin = 0;  // first element
  int64_t count = 0;
  int32_t total = 0;
  std::array<uint8_t, kMost> masses;
  std::array<int32_t, kMost / kGroup + kLook> sums;  // up to the end of each group, then INT32_MAX
};

enum class SharedStop { kDone, kNeedsMasses, kEndsEarly, kNoElement };

// Where the decoder of one tensor is.
struct SharedCursor {
  const SharedModel* model = nullptr;
  const uint8_t* windows = nullptr;  // that each of the kSharedScale low values of the state stands for
  const uint16_t* words = nullptr;
  int64_t words_left = 0;  // without kSharedPad
  uint32_t state = 0;
  bool has_gap = false;  // `window` and `slot` are those of a position that lies behind `run`
  uint32_t slot = 0;
  int64_t window = 0;  // mass before the position's last window
  int64_t at = 0;      // the next element that may come, counted from run->begin
  int64_t passed = 0;  // mass before it; both masses are counted from run->begin too
  int64_t decoded = 0;
  MassRun* run = nullptr;
};

struct SharedKernels {
  // Makes total and sums.
  void (*sum)(MassRun* run);

  // Decodes `count` positions into `positions`, from index cursor->decoded on. kNeedsMasses: `run` ends before the next
  // one; after moving to the next run by SharedCursor's masses, call it again.
  SharedStop (*decode)(SharedCursor* cursor, int64_t count, uint32_t* positions);
};

const SharedKernels& GetSharedKernels();

}  // namespace terse

#endif  // TERSE_COMPRESSION_SHARED_KERNELS_H_
