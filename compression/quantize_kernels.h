// The inner loops of the codecs that speak of every element: statistics of a bucket, its symbols, and values from
// symbols. All SIMD targets give the same bits.
#ifndef TERSE_COMPRESSION_QUANTIZE_KERNELS_H_
#define TERSE_COMPRESSION_QUANTIZE_KERNELS_H_

#include <cstdint>

#include "compression/imputation.h"

namespace terse {

// Partial sums of a statistic over a tensor: element j of it adds its term to number j mod 8, in order.
constexpr int64_t kPartialSums = 8;

// In all of them `size` is the number of elements, and values are finite where they are quantized.
struct QuantizeKernels {
  // Statistics. The first element has an index that is a multiple of kPartialSums. Terms are doubles.
  void (*add_magnitudes)(const float* values, int64_t size, double* partial);
  void (*add_squares)(const float* values, int64_t size, double* partial);
  // Magnitudes of values whose sign bit is clear to `above`, of the others to `below`. Returns how many are below 0.
  int64_t (*add_by_sign)(const float* values, int64_t size, double* above, double* below);

  // sums[i] = the total of the magnitudes of values[8 * i], ..., values[8 * i + 7], as TotalOfLanes adds them.
  void (*octet_magnitudes)(const float* values, int64_t octets, double* sums);

  // mcgq: T of the sums C in `reached`, which are at most `norm`: `samples` where that is reached, otherwise the
  // smaller of `samples` and ceil(samples * reached / norm - shift).
  void (*samples_until)(const double* reached, int64_t size, double norm, double shift, int32_t samples,
                        int32_t* until);

  // Symbols of values; the codec that is named says which.
  void (*signs)(const float* values, int64_t size, uint32_t* symbols);    // 1 below 0, else 0
  void (*to_fp16)(const float* values, int64_t size, uint32_t* symbols);  // ToFp16
  void (*to_bf16)(const float* values, int64_t size, uint32_t* symbols);  // ToBf16
  // qsgd: `norm` > 0 is at least every magnitude.
  void (*to_levels)(const float* values, const uint32_t* draws, int64_t size, double norm, int32_t levels,
                    uint32_t* symbols);
  // terngrad: 1 or 2 with the probability |value| / scale, scale > 0; else 0.
  void (*to_ternary)(const float* values, const uint32_t* draws, int64_t size, double scale, uint32_t* symbols);
  // low_precision: LowPrecisionLevel, at least -(2^(bits - 1) - 1), modulo 2^bits.
  void (*to_low_precision)(const float* values, const uint32_t* draws, int64_t size, float delta, int bits,
                           uint32_t* symbols);

  // Marks of the elements that a sparse codec sends: 1 for a positive one, 2 for a negative one, else 0.
  // low_precision_sparse: with the probability |value| / scale.
  void (*mark_by_chance)(const float* values, const uint32_t* draws, int64_t size, double scale, uint32_t* marks);
  // adacomp: those that are not 0 and have |value + latest|, added in float32, of at least `bound`.
  void (*mark_at_least)(const float* values, const float* latest, int64_t size, float bound, uint32_t* marks);

  // Values of symbols. Those that return a bool say whether all symbols are such as the codec makes.
  bool (*from_floats)(const uint32_t* symbols, int64_t size, float* values);  // dense: the bits of finite floats
  bool (*from_fp16)(const uint32_t* symbols, int64_t size, float* values);    // FromFp16
  bool (*from_bf16)(const uint32_t* symbols, int64_t size, float* values);    // FromBf16
  // (symbol >> 1) * unit, negative where the symbol is odd.
  bool (*from_levels)(const uint32_t* symbols, int64_t size, double unit, float* values);
  bool (*from_low_precision)(const uint32_t* symbols, int64_t size, float delta, int bits, float* values);
  void (*from_table)(const uint32_t* symbols, int64_t size, const float* table, float* values);  // symbols 0, 1, 2

  // The bitwise or and the bitwise and of some symbols, combined with what is there.
  void (*or_and)(const uint32_t* symbols, int64_t size, uint32_t* any, uint32_t* all);
  // sums[i] += scale * values[i], both operations in float32.
  void (*add_scaled)(const float* values, int64_t size, float scale, float* sums);
  // values[i] *= scale. Returns whether all of them are finite then.
  bool (*scale)(int64_t size, float scale, float* values);
  // sums[i] = imputation.Step(sums[i], senders[i]). Returns whether all of them are finite then.
  bool (*impute)(int64_t size, const Imputation& imputation, const float* senders, float* sums);
};

// Returns the kernels of the SIMD target in use.
const QuantizeKernels& GetQuantizeKernels();

}  // namespace terse

#endif  // TERSE_COMPRESSION_QUANTIZE_KERNELS_H_
