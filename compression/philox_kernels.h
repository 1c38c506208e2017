// The inner loop of counter_random, in plain C++ and for every SIMD target. All give the same words.
#ifndef TERSE_COMPRESSION_PHILOX_KERNELS_H_
#define TERSE_COMPRESSION_PHILOX_KERNELS_H_

#include <array>
#include <cstdint>

namespace terse {

// The constants of Philox4x32: multipliers of words 0 and 2, and what a round adds to the key.
constexpr uint32_t kPhiloxMultiplier[2] = {0xd2511f53u, 0xcd9e8d57u};
constexpr uint32_t kPhiloxWeyl[2] = {0x9e3779b9u, 0xbb67ae85u};
constexpr int kPhiloxRounds = 10;

// The block at `counter` under `key`, after ten rounds.
inline std::array<uint32_t, 4> PhiloxBlock(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t a = uint64_t{kPhiloxMultiplier[0]} * counter[0];
    const uint64_t b = uint64_t{kPhiloxMultiplier[1]} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += kPhiloxWeyl[0];
    key[1] += kPhiloxWeyl[1];
  }
  return counter;
}

// Writes `blocks` blocks of four words: those of the counters whose word 0 is counter[0], counter[0] + 1, ... modulo
// 2^32, with the other words of `counter`.
using PhiloxKernel = void (*)(const std::array<uint32_t, 4>& counter, const std::array<uint32_t, 2>& key,
                              int64_t blocks, uint32_t* words);

// Returns the kernel of the SIMD target in use.
PhiloxKernel GetPhiloxKernel();

}  // namespace terse

#endif  // TERSE_COMPRESSION_PHILOX_KERNELS_H_
