// The inner loops of the decoder of shared_coder.h, for every SIMD target (simd.h). Not for use by anything else.
#ifndef TERSE_COMPRESSION_SHARED_KERNELS_H_
#define TERSE_COMPRESSION_SHARED_KERNELS_H_

#include <array>
#include <cstdint>

namespace terse {

class PositionHistory;

constexpr int kSharedScaleBits = 12;
constexpr uint32_t kSharedScale = 1 << kSharedScaleBits;
constexpr int kSharedWindows = 16;  // the last one means: none of the others, look again behind them
constexpr int kSharedWordBits = 16;
constexpr int64_t kSharedPad = 4;  // words behind the last one that can be read and stand for nothing
constexpr int kSharedMostLanes = 2;
constexpr uint32_t kSharedLowest = 1 << kSharedWordBits;  // least state

struct SharedInterval {
  uint32_t frequency = 0;
  uint32_t begin = 0;
};

// The code of a number of positions, whatever the masses: a gap is whole windows of 2^slot_bits mass, and a slot in the
// last one.
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
  std::array<int32_t, 1 + kMost / kGroup + kLook> sums;  // 0, up to the end of each group, then INT32_MAX
};

// The decoder of some of a tensor's positions, in a stretch of its elements of their own. Lanes are decoded in step, so
// that the processor need not wait for what one of them depends on.
struct SharedLane {
  uint32_t state = 0;
  int64_t end = 0;  // the first element behind the stretch
  int64_t at = 0;   // once all is decoded: the next element that may come, counted from run.begin
  MassRun run;
};

// Returns the sum of the eight bytes of a word.
inline uint64_t SumOfBytes(uint64_t bytes) {
  constexpr uint64_t kEven = 0x00ff00ff00ff00ff;
  return ((bytes & kEven) + (bytes >> 8 & kEven)) * 0x0001000100010001 >> 48;
}

enum class SharedStop { kDone, kEndsEarly, kNoElement, kPastTheEnd };

// The part of the decoding that the lanes of a tensor have in common.
struct SharedDecoding {
  const SharedModel* model = nullptr;
  const uint8_t* windows = nullptr;     // that each of the kSharedScale low values of the state stands for
  const uint16_t* words = nullptr;      // the next one
  const uint16_t* words_end = nullptr;  // kSharedPad more can be read
  const PositionHistory* history = nullptr;
  int side = 0;
  // Goes on to the masses of the next elements of a lane; false when there are none.
  bool (*next_run)(const SharedDecoding& decoding, SharedLane* lane) = nullptr;
};

struct SharedKernels {
  // Makes total and sums.
  void (*sum)(MassRun* run);

  // Decodes `counts[l]` positions of lane l into positions[l], for one lane or two: one position of each lane, then the
  // next of each. The first lane has as many as the second, or one more.
  SharedStop (*decode)(SharedDecoding* decoding, int lanes, SharedLane* lane, const int64_t* counts,
                       uint32_t* const* positions);
};

const SharedKernels& GetSharedKernels();

}  // namespace terse

#endif  // TERSE_COMPRESSION_SHARED_KERNELS_H_
