// Monte Carlo Gradient Quantization: Mordido, Van Keirsbilck, Keller (CVPR workshops 2020), Algorithms 1 and 2. N =
// ceil(n * K) evenly spaced samples x_i = (xi + i) / N, i = 0 .. N-1, with one random shift xi in [0, 1), fall on the
// partition of [0, 1) by P_k = (|g_0| + ... + |g_k|) / ||g||_1. Element k becomes the number of samples in [P_{k-1},
// P_k), with the sign of g_k, times ||g||_1 / N: small elements are rarely hit, so the result is sparse and of few
// bits.
//
// Readings, where the paper leaves a choice:
// - xi is one draw a tensor; Algorithm 1 draws it once outside its loop. The samples' order then gives the closed form
//   count_k = T_k - T_{k-1}, T_k = ceil(N * P_k - xi), T_{-1} = 0, in one pass; the counts sum to N.
// - Float rules: C_k is a sum of doubles, by octets of elements, the last one filled up with zeros. To that at the end
//   of the octet before, the octet's magnitudes are added in index order, and the result is at most C at the octet's
//   end, which the last element that is not 0 has: to that of the octet before, the octet's total is added
//   (TotalOfLanes of exact_math.h). T_k = N where C_k = ||g||_1 = C_{n-1}, otherwise min(N, ceil(N * C_k / C_{n-1} -
//   xi)), each operation rounded to double, in this order. T never falls, for rounding is monotone. xi is draw 0 of the
//   tensor's stream as UniformDouble.
// - n * K is a product of doubles. N is at most 2^31 - 1. K is EncodeOptions::rates (Algorithm 3, dynamic_sampling.h),
//   or spec.samples without; 0 < K <= 1024.
// - The scale ||g||_1 / N always travels, as one float32 a tensor (section 3.4's note for optimizers that depend on
//   it); a tensor of zeros has level 0 everywhere and scale 0.
// - A decoded element is level * scale as LevelValue of signed_level.h says.
// Algorithm 4, which zeroes what was sampled, is the feedback accumulation.h.
//
// Messages, by spec.code: "simple" is the code of section 3.4 (mcgq_rle.h); "positions" is the sparse message of
// sparse_codec.h with levels, which is smaller where levels are few: their positions by any coder, then each magnitude
// in the Elias gamma code and its sign.
//
// Settings: samples, code, positions. Unbiased, but for the rounding of the scale (relative error 2^-24, more where it
// is below the smallest normal float32 or, for K < 1 and huge elements, above the largest one); the variance of a level
// is at most 1/4. Not lossless; stochastic. A tensor with one element, and a constant one with N a multiple of n,
// decode to themselves but for the scale's rounding. NaN and infinity are refused with tensor and index; so is a rate
// out of range.
// Cost a tensor: simple: 96 bits and the tokens; positions: the bit length of n, and if anything is sent 32 bits, 2
// floor(log2 |level|) + 2 bits a level, and the position coder's bits.
//
// Example: {1, 0, -2, 1}, K = 1, xi = 0.5: N = 4, N * P = {1, 1, 3, 4}, T = {1, 1, 3, 4}: levels {1, 0, -2, 1},
// scale 1.
#ifndef TERSE_COMPRESSION_MCGQ_H_
#define TERSE_COMPRESSION_MCGQ_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "compression/mcgq_rle.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

constexpr double kMostSamples = 1024;  // of K

// N = ceil(n * K) for a tensor of `size` elements, 0 < samples <= kMostSamples.
int64_t SampleCount(double samples, int64_t size);

// Returns the 1-norm of the values, which is C_{n-1}; finite exactly when all values are.
double SampleNorm(absl::Span<const float> values);

// Algorithm 1 with that N, xi and ||g||_1 > 0: appends the levels that are not zero. The sum of their magnitudes is N.
void SampleLevels(absl::Span<const float> values, int64_t count, double xi, double norm, SparseLevels* levels);

// The codec "mcgq" of either code. INVALID_ARGUMENT for a setting out of range. The contract is Codec's.
absl::StatusOr<std::unique_ptr<const Codec>> CreateMcgq(const CodecSpec& spec, const Layout& layout);

}  // namespace terse

#endif  // TERSE_COMPRESSION_MCGQ_H_
