// The inner loops of top_select, in plain C++ and for every SIMD target. All give the same bits.
#ifndef TERSE_COMPRESSION_SELECT_KERNELS_H_
#define TERSE_COMPRESSION_SELECT_KERNELS_H_

#include <cstdint>

namespace terse {

// The rule by which a kernel takes floats: it takes those whose key, (bits & mask) ^ flip as a signed integer, is at
// least `bound` >= 1. With kPositive and kNegative the key of a float of that sign is its magnitude's bits, and other
// floats have none of 1 or more.
struct KeyRule {
  uint32_t mask;
  uint32_t flip;
  int32_t bound;
};
constexpr KeyRule kPositive = {0xffffffffu, 0, 1};
constexpr KeyRule kNegative = {0xffffffffu, 0x80000000u, 1};
constexpr KeyRule kEither = {0x7fffffffu, 0, 1};

inline int32_t Key(const KeyRule& rule, uint32_t float_bits) {
  return static_cast<int32_t>((float_bits & rule.mask) ^ rule.flip);
}

// Outputs need room for this many entries more than are kept.
constexpr int64_t kSelectPad = 64;

struct SelectKernels {
  // One pass over `size` floats: sum[i] = values[i] + residual[i] when `residual` is not null, and the entries that are
  // at least `positive` or at most -`negative` (magnitude bits, 1 to infinity's) go to `kept_indices` and
  // `kept_values`, in order. NaN and infinity are always among them. `first` is the index of values[0]. Returns how
  // many.
  int64_t (*collect)(const float* values, const float* residual, float* sum, int64_t size, uint32_t first,
                     int32_t positive, int32_t negative, uint32_t* kept_indices, float* kept_values);

  // Copies the entries that `rule` takes, in order; the outputs may be the inputs, or lie before them. Returns how
  // many.
  int64_t (*filter)(const uint32_t* indices, const float* values, int64_t size, KeyRule rule, uint32_t* kept_indices,
                    float* kept_values);

  // The largest MagnitudeBits; 0 when there are no values.
  uint32_t (*max_magnitude)(const float* values, int64_t size);

  // Copies the MagnitudeBits that are in [low, high], low >= 1, in order. Returns how many.
  int64_t (*between)(const float* values, int64_t size, uint32_t low, uint32_t high, uint32_t* kept);

  // Writes first + the places of the words that are not 0, in order. Returns how many.
  int64_t (*nonzero)(const uint32_t* words, int64_t size, uint32_t first, uint32_t* places);
};

// Returns the kernels of the SIMD target in use.
const SelectKernels& GetSelectKernels();

}  // namespace terse

#endif  // TERSE_COMPRESSION_SELECT_KERNELS_H_
