#include "compression/counter_random.h"

#include <algorithm>

#include "compression/philox_kernels.h"

namespace terse {
namespace {

constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15u;

// The output function of SplitMix64: a bijection of 64-bit words that spreads every bit.
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint32_t Low(uint64_t word) { return static_cast<uint32_t>(word); }
uint32_t High(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

}  // namespace

CounterRandom::CounterRandom(const CodecKey& key, int64_t tensor) {
  const uint64_t run = Mix(key.run + kGoldenRatio);
  const uint64_t encoding = Mix(Mix(key.round + kGoldenRatio) + key.client);
  key_ = {Low(run), High(run)};
  counter_ = {0, static_cast<uint32_t>(tensor), Low(encoding), High(encoding)};
}

std::array<uint32_t, 4> CounterRandom::CounterOf(int64_t block) const {
  std::array<uint32_t, 4> counter = counter_;
  counter[0] = static_cast<uint32_t>(block);
  return counter;
}

void CounterRandom::Fill(int64_t first, absl::Span<uint32_t> words) const {
  // Whole blocks between words that begin or end in the middle of one.
  const size_t before = std::min(words.size(), static_cast<size_t>((4 - first % 4) % 4));
  for (size_t i = 0; i < before; ++i) words[i] = At(first + static_cast<int64_t>(i));
  const absl::Span<uint32_t> rest = words.subspan(before);
  const int64_t begin = first + static_cast<int64_t>(before);
  const size_t whole = rest.size() / 4 * 4;
  GetPhiloxKernel()(CounterOf(begin / 4), key_, static_cast<int64_t>(whole / 4), rest.data());
  for (size_t i = whole; i < rest.size(); ++i) rest[i] = At(begin + static_cast<int64_t>(i));
}

uint32_t CounterRandom::At(int64_t index) const { return PhiloxBlock(CounterOf(index / 4), key_)[index % 4]; }

}  // namespace terse
