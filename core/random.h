// Seeded random numbers that are the same on every machine and in every build (the standard library's distributions are
// not). Not for secrets.
#ifndef TERSE_CORE_RANDOM_H_
#define TERSE_CORE_RANDOM_H_

#include <cstdint>

namespace terse {

// SplitMix64 (Steele, Lea, Flood 2014). A value type; copying it copies the position in the stream. Not thread-safe.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // An independent stream for each (seed, stream) pair.
  Random(uint64_t seed, uint64_t stream) : state_(seed) {
    state_ = Next() ^ (stream * 0xd1342543de82ef95ULL);
    Next();
  }

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound), bound >= 1, by multiplication with rejection (Lemire 2019).
  uint64_t Below(uint64_t bound) {
    while (true) {
      const __uint128_t product = static_cast<__uint128_t>(Next()) * bound;
      const uint64_t low = static_cast<uint64_t>(product);
      if (low >= bound || low >= (0 - bound) % bound) return static_cast<uint64_t>(product >> 64);
    }
  }

  // Uniform in [0, 1) with 53 random bits.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }

 private:
  uint64_t state_;
};

}  // namespace terse

#endif  // TERSE_CORE_RANDOM_H_
