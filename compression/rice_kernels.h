// The inner loops of rice, in plain C++ and for every SIMD target. All give the same integers.
#ifndef TERSE_COMPRESSION_RICE_KERNELS_H_
#define TERSE_COMPRESSION_RICE_KERNELS_H_

#include <cstdint>

namespace terse {

// `find_ones` may write so many entries behind those it was asked for.
constexpr int64_t kOnesPad = 72;

// The packers may write so many bytes behind the last one that holds bits.
constexpr int64_t kPackPad = 8;

struct RiceKernels {
  // The low `width` bits of each gap side by side from the first bit of `bytes` on, 1 <= width <= 32.
  void (*pack)(const uint32_t* gaps, int64_t count, int width, char* bytes);

  // unary(gaps[i] >> width) for each gap from bit `bit` of `bytes` on, where all is zero so far. Returns the bit behind
  // them, which is below 2^32.
  uint32_t (*pack_unary)(const uint32_t* gaps, int64_t count, int width, char* bytes, uint32_t bit);

  // The places of the first `wanted` ones in the bits skip, skip + 1, ... of the `size` bytes at `bytes`, counted from
  // bytes[0]'s lowest bit; fewer when there are no more. 0 <= skip < 8, and 8 * size < 2^32. Returns how many.
  int64_t (*find_ones)(const char* bytes, int64_t size, int skip, int64_t wanted, uint32_t* ones);

  // fields[i] = bits [bit + i * width, bit + (i + 1) * width) of the `size` bytes at `bytes`, least significant first,
  // for 0 <= i < count. 1 <= width <= 32. All the bits are there; nothing behind the bytes is read.
  void (*unpack)(const char* bytes, int64_t size, uint64_t bit, int width, int64_t count, uint32_t* fields);

  // positions[i] = base + ((ones[i] - i) << width) + (remainders[0] + ... + remainders[i]) + i, modulo 2^32. Returns
  // the sum of all remainders, modulo 2^32.
  uint32_t (*combine)(const uint32_t* ones, const uint32_t* remainders, int64_t count, int width, uint32_t base,
                      uint32_t* positions);
};

// Returns the kernels of the SIMD target in use.
const RiceKernels& GetRiceKernels();

}  // namespace terse

#endif  // TERSE_COMPRESSION_RICE_KERNELS_H_
